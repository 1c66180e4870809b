/*
 * The path of one signer's transactions: lease, fence, nonce, claim, broadcast, confirm.
 *
 * The processes are two nodes and their database sessions, a client that asks for three transactions, a chain, and a
 * demon that injects up to FAULTS faults at any point. Each step below is atomic: a statement that takes its locks, a
 * commit, a call that arrives. Between any two steps, every other process may run for any time. That is how a pause, a
 * slow network and a full disk look from outside.
 *
 * The promises have names. The assertions, and the formula at the end, check them. docs/correctness.md says what the
 * model covers and what it does not. run.sh runs the checks. Each of these macros breaks the protocol on purpose:
 *
 *   NO_LOCK                 the fence is a bare EXISTS: it reads the lease and does not lock it
 *   PLAIN_UPDATE_TAKEOVER   the takeover is a plain UPDATE, which does not wait for a key-share lock
 *   NO_TERMINATE            the takeover waits, and never ends the sessions of the expired owner
 *   STALE_SNAPSHOT          the create is one statement: its snapshot is older than its wait for the cursor
 *   BROADCAST_BEFORE_CLAIM  the node stores the hash after the call, not before
 *   UNCLAIMED_RESEND        the node sends stored bytes again without a fenced write first
 *   UNCOUNTED_CLAIMS        the write of a refusal does not check whether the row was claimed again in between
 *   REFUSAL_STAYS           the node claims refused bytes again, and the row still says that the chain refused them
 *   RELEASE_UNKNOWN         a nonce is released although the chain may have, or may get, a transaction at it
 *   RELEASE_LOWER           a nonce is released although higher ones were assigned
 */
#ifndef FAULTS
#define FAULTS 2
#endif

#ifndef TXS
#define TXS 3
#endif

#define MOST   3 /* requests 0, 1, 2 of one signer; nonces and hashes count from 1, and 0 means none */
#define ORPHAN 2 /* sessions 0 and 1 belong to the nodes; this session has lost its client and continues */

/* The promises. They are always false: their names are in the assertions, so a counterexample names what it broke. */
bool one_nonce_for_a_transaction, one_transaction_for_a_nonce, no_gap_below_the_cursor;
bool no_stale_write;
bool one_hash_for_a_nonce_is_ever_out, only_what_is_stored_is_mined;
bool what_is_answered_is_stored;

/* --- PostgreSQL: what is committed ---------------------------------------------------------------------------- */

/* A fencing token is a number that only grows. The protocol only asks whether a token is the newest, so the model
   stores only that: a takeover makes every existing token an old one. */
#define NONE   0
#define OLD    1
#define NEWEST 2

/* signer_lease. An owner is a process of a node: 0 and 1 are the running ones, DEAD is any process that has died. */
#define DEAD 2
byte lease_owner = 0;   /* by symmetry: node 0 is the first owner */
bool lease_live = true; /* expires_at > clock_timestamp() */

/* signer_nonce_cursor */
byte cursor = 1;

/* managed_tx and tx_open. Signing at the low price gives hash 1, at the high price hash 2. */
mtype = {absent, allocated, tracking, confirmed, rejected};
mtype state[MOST] = absent;
byte nonce[MOST];
byte released[MOST]; /* released_nonce: the nonce that a rejected transaction had; its bytes still carry it */
byte hash[MOST];
bool is_refused[MOST]; /* the attempt's outcome: the chain refused it and does not have it, so it may be signed again */

/* --- PostgreSQL: the sessions --------------------------------------------------------------------------------- */

mtype = {nothing, create, claim, refuse, track, confirm, release};             /* jobs: each is one fenced transaction */
mtype = {idle, asked, locked, written, committed, zero_rows, fenced}; /* how far the job is, or how it ended */

typedef Session {
  mtype at;
  mtype job;
  byte tx;
  byte hash;
  byte token;
  bool first;   /* claim, when it ends: the chain cannot have it yet */
  bool found;   /* create: the request existed when the statement began */
  bool outdated /* refuse: another claim committed in between (the row counts claims) */
};
Session db[3];

#define is_open(s)   (db[s].at == asked || db[s].at == locked || db[s].at == written)
#define has_ended(s) (db[s].at == committed || db[s].at == zero_rows || db[s].at == fenced)

/* FOR KEY SHARE on the lease, from the check to the end of the transaction. */
#ifdef NO_LOCK
#define holds_lease(s) false
#else
#define holds_lease(s) (db[s].at == locked || db[s].at == written)
#endif

/* A create locks the cursor, every other job a row of tx_open, and the release of a nonce both. */
#define locks_cursor(s) (db[s].job == create || db[s].job == release)
#define locks_row(s)    (db[s].job != create)
#define blocks(other, s) \
  (other != s && db[other].at == written && \
   ((locks_cursor(s) && locks_cursor(other)) || (locks_row(s) && locks_row(other) && db[other].tx == db[s].tx)))
#define row_is_free(s) (!blocks(0, s) && !blocks(1, s) && !blocks(ORPHAN, s))

/* --- the nodes: what is in their memory ----------------------------------------------------------------------- */

mtype = {looking, in_database, calling, answered};
mtype = {unanswered, accepted, refused};

typedef Node {
  mtype doing;
  byte token;      /* of the lease that the node believes it holds */
  byte call_tx;    /* eth_sendRawTransaction: from the decision to the answer */
  byte call_hash;
  bool call_first; /* the chain cannot have had it before */
  mtype answer;
  bool paused
};
Node node[2];
bool stopped; /* the paused node never continues */

/* --- the client and the chain --------------------------------------------------------------------------------- */

bool served[MOST]; /* the client has its answer. Until then it asks again, with the same request id */

byte pool[MOST + 1]; /* by nonce: the accepted transaction, and below next_mined the mined one */
byte ever[MOST + 1]; /* by nonce: the transaction that was ever accepted */
byte next_mined = 1;
bool price_is_high;

byte late_tx; /* a call that is still on its way and whose caller has gone */
byte late_hash;

#define price_hash      (price_is_high -> 2 : 1)
#define signed_tx(x, h) (2 * (x) + (h))
#define nonce_in(x)     (nonce[x] != 0 -> nonce[x] : released[x]) /* the bytes */
#define is_mined(x)     (state[x] != absent && state[x] != rejected && nonce[x] < next_mined)
#define is_out(x)       (is_mined(x) || pool[nonce[x]] != 0)

byte faults = FAULTS;

/* --- one fenced transaction, in its session ------------------------------------------------------------------- */

#define forget(s) \
  db[s].at = idle; \
  db[s].job = nothing; \
  db[s].tx = 0; \
  db[s].hash = 0; \
  db[s].token = NONE; \
  db[s].first = false; \
  db[s].found = false; \
  db[s].outdated = false

/* An orphan has no listener. The other sessions store what their node needs to continue. */
#define finish(s, result) \
  if \
  :: s == ORPHAN -> forget(s) \
  :: s != ORPHAN && result == committed && (db[s].job == create || db[s].job == claim) -> \
    db[s].at = committed; \
    db[s].token = NONE \
  :: else -> \
    forget(s); \
    db[s].at = result \
  fi

/* A job under an old token can only be fenced. So it is fenced at once, whatever the job is. */
#define fence_if_old(s) \
  if \
  :: db[s].at == asked && db[s].token == OLD -> finish(s, fenced) \
  :: else \
  fi

#define fence_holds(s) (lease_live && db[s].token == NEWEST)

/* UPDATE … WHERE state = <from>: PostgreSQL reads the guard after the wait for the row. */
#ifdef BROADCAST_BEFORE_CLAIM
#define is_stored(x, h) true
#else
#define is_stored(x, h) (hash[x] == (h))
#endif
#ifdef UNCOUNTED_CLAIMS
#define is_outdated(s) false
#else
#define is_outdated(s) db[s].outdated
#endif
/* A transaction ends as rejected: it was never signed, or its newest attempt was refused and was not claimed since.
   Here for any refusal, also for one that a lower price would cure. */
#ifdef RELEASE_UNKNOWN
#define is_refused_or_unsigned(x) true
#else
#define is_refused_or_unsigned(x) (hash[x] == 0 || is_refused[x])
#endif
#ifdef RELEASE_LOWER
#define is_last_nonce(x) true
#else
#define is_last_nonce(x) (nonce[x] == cursor - 1)
#endif
#define may_release(x) (state[x] == allocated && is_refused_or_unsigned(x) && is_last_nonce(x))
#define guard_holds(s, x, h) \
  ((db[s].job == claim && state[x] == allocated && (hash[x] == 0 || hash[x] == h || is_refused[x])) || \
   (db[s].job == claim && state[x] == tracking && hash[x] == h) || \
   (db[s].job == refuse && state[x] == allocated && hash[x] == h && !is_outdated(s)) || \
   (db[s].job == track && state[x] == allocated && is_stored(x, h)) || \
   (db[s].job == confirm && state[x] == tracking) || \
   (db[s].job == release && may_release(x)))

#ifdef STALE_SNAPSHOT
#define already_there(s) db[s].found
#else
#define already_there(s) (state[db[s].tx] != absent)
#endif

inline write(s) {
  if
  :: db[s].job == create && already_there(s) -> finish(s, committed) /* the answer is the existing transaction */
  :: db[s].job == create && !already_there(s) -> db[s].at = written
  :: db[s].job != create && guard_holds(s, db[s].tx, db[s].hash) -> db[s].at = written
  :: db[s].job != create && !guard_holds(s, db[s].tx, db[s].hash) -> finish(s, zero_rows)
  fi
}

#define no_gap \
  ((nonce[0] != 0) + (nonce[1] != 0) + (nonce[2] != 0) == cursor - 1 && \
   nonce[0] < cursor && nonce[1] < cursor && nonce[2] < cursor)

inline give_nonce(x) {
  assert(one_nonce_for_a_transaction || nonce[x] == 0);
  assert(one_transaction_for_a_nonce || (nonce[0] != cursor && nonce[1] != cursor && nonce[2] != cursor));
  nonce[x] = cursor;
  state[x] = allocated;
  cursor++;
  assert(no_gap_below_the_cursor || no_gap)
}

inline take_nonce_back(x) {
  released[x] = nonce[x];
  nonce[x] = 0;
  state[x] = rejected;
  cursor--;
  assert(no_gap_below_the_cursor || no_gap)
}

#define outdate(other, s) \
  db[other].outdated = (db[other].outdated || (db[other].job == refuse && db[other].tx == db[s].tx))

inline commit(s) {
  printf("session %d commits job %e of transaction %d, hash %d\n", s, db[s].job, db[s].tx, db[s].hash);
  assert(no_stale_write || db[s].token == NEWEST); /* no node has taken over since the check */
  if
  :: db[s].job == create -> give_nonce(db[s].tx)
  :: db[s].job == claim ->
    outdate(0, s);
    outdate(1, s);
    outdate(ORPHAN, s);
    db[s].first = (hash[db[s].tx] == 0 || is_refused[db[s].tx]);
#ifdef REFUSAL_STAYS
    is_refused[db[s].tx] = (hash[db[s].tx] == db[s].hash -> is_refused[db[s].tx] : false);
#else
    is_refused[db[s].tx] = false;
#endif
    hash[db[s].tx] = db[s].hash
  :: db[s].job == refuse -> is_refused[db[s].tx] = true
  :: db[s].job == track ->
    state[db[s].tx] = tracking;
    hash[db[s].tx] = db[s].hash;
    is_refused[db[s].tx] = false
  :: db[s].job == confirm -> state[db[s].tx] = confirmed
  :: db[s].job == release -> take_nonce_back(db[s].tx)
  fi;
  finish(s, committed)
}

/* A paused client also pauses its session: the rest of the pipeline has not been sent. */
#define runs(s) (s == ORPHAN || !node[s].paused)

proctype DatabaseSession(byte s) {
end:
  do
  :: d_step { db[s].at == asked && runs(s) ->
       if
       :: fence_holds(s) ->
         printf("session %d passes the fence with job %e of transaction %d\n", s, db[s].job, db[s].tx);
#ifdef STALE_SNAPSHOT
         db[s].found = (db[s].job == create && state[db[s].tx] != absent);
#endif
         db[s].at = locked
       :: else -> finish(s, fenced)
       fi }
  :: d_step { db[s].at == locked && runs(s) && row_is_free(s) -> write(s) }
  :: d_step { db[s].at == written && runs(s) -> commit(s) }
  od
}

/* --- a node --------------------------------------------------------------------------------------------------- */

/* Any other process may run between any two of these steps, which is a short pause. The flag makes a long one. */
#define is_free(n) (!node[n].paused && node[n].doing == looking)
#define leads(n)   (is_free(n) && node[n].token != NONE)
#define strays(n)  (is_free(n) && node[n].token == NONE)

#define ask(n, what, x, h) \
  db[n].at = asked; \
  db[n].job = what; \
  db[n].tx = x; \
  db[n].hash = h; \
  db[n].token = node[n].token; \
  node[n].doing = in_database; \
  fence_if_old(n)

#define call(n, x, h, is_first) \
  node[n].call_tx = x; \
  node[n].call_hash = h; \
  node[n].call_first = is_first; \
  node[n].doing = calling; \
  printf("node %d calls with transaction %d, hash %d\n", n, node[n].call_tx, node[n].call_hash)

#define forget_call(n) \
  node[n].call_tx = 0; \
  node[n].call_hash = 0; \
  node[n].call_first = false; \
  node[n].answer = unanswered

/* The fence first: FENCED means stop and drop what is in memory. Only the node that has just claimed makes the call. */
inline take_answer_of_database(n) {
  node[n].doing = looking;
  if
  :: db[n].at == fenced -> node[n].token = NONE; printf("node %d is fenced\n", n)
  :: db[n].at == committed && db[n].job == create ->
    assert(what_is_answered_is_stored || state[db[n].tx] != absent);
    served[db[n].tx] = true
  :: db[n].at == committed && db[n].job == claim -> call(n, db[n].tx, db[n].hash, db[n].first)
  :: else
  fi;
  forget(n)
}

inline take_answer_of_chain(n) {
  printf("node %d learns that transaction %d, hash %d was %e\n", n, node[n].call_tx, node[n].call_hash, node[n].answer);
  if
  :: node[n].answer == accepted -> ask(n, track, node[n].call_tx, node[n].call_hash)
  :: node[n].answer == refused && node[n].call_first -> ask(n, refuse, node[n].call_tx, node[n].call_hash)
  :: else -> node[n].doing = looking
  fi;
  forget_call(n)
}

#define newest_or_old(token) token = (token == NEWEST -> OLD : token)

#define take_over(n) \
  newest_or_old(node[0].token); \
  newest_or_old(node[1].token); \
  newest_or_old(db[0].token); \
  newest_or_old(db[1].token); \
  newest_or_old(db[ORPHAN].token); \
  fence_if_old(0); \
  fence_if_old(1); \
  fence_if_old(ORPHAN); \
  get_lease(n)

#define get_lease(n) \
  lease_owner = n; \
  lease_live = true; \
  node[n].token = NEWEST

/* The owner's lease has expired. FOR UPDATE waits for key-share locks. */
#define may_take_over(n) (strays(n) && !lease_live)
#ifdef PLAIN_UPDATE_TAKEOVER
#define lease_is_free true
#else
#define lease_is_free (!holds_lease(0) && !holds_lease(1) && !holds_lease(ORPHAN))
#endif

/* pg_terminate_backend: the client, if there is one, looks at the row, and never blindly repeats the write. */
#define terminate(s) \
  printf("session %d is terminated\n", s); \
  forget(s); \
  if \
  :: s != ORPHAN -> node[s].doing = looking \
  :: else \
  fi

#define should_send(x)  (state[x] == allocated || (state[x] == tracking && !is_out(x)))
#define hash_to_send(x) (hash[x] == 0 || is_refused[x] -> price_hash : hash[x])
#if defined(BROADCAST_BEFORE_CLAIM)
#define send(n, x) call(n, x, hash_to_send(x), false)
#elif defined(UNCLAIMED_RESEND)
#define send(n, x) \
  if \
  :: hash[x] == hash_to_send(x) -> call(n, x, hash[x], is_refused[x]) \
  :: else -> ask(n, claim, x, hash_to_send(x)) \
  fi
#else
#define send(n, x) ask(n, claim, x, hash_to_send(x))
#endif

/* Requests that no node has begun to serve are equal: by symmetry, take the lowest. */
#define creates(s, x) (is_open(s) && db[s].job == create && db[s].tx == (x))
#define is_begun(x)   (state[x] != absent || creates(0, x) || creates(1, x) || creates(ORPHAN, x))
#define comes_next(x) (is_begun(x) || (((x) < 1 || is_begun(0)) && ((x) < 2 || is_begun(1))))

/* The work that a leader finds for transaction x in the database and on the chain. */
#define WORK(n, x) \
  :: d_step { leads(n) && !served[x] && x < TXS && comes_next(x) -> ask(n, create, x, 0) } \
  :: d_step { leads(n) && should_send(x) -> send(n, x) } \
  :: d_step { leads(n) && state[x] == tracking && is_mined(x) -> ask(n, confirm, x, 0) } \
  :: d_step { leads(n) && may_release(x) -> ask(n, release, x, 0) }

proctype NodeProcess(byte n) {
end:
  do
  WORK(n, 0)
  WORK(n, 1)
  WORK(n, 2)
  :: d_step { !node[n].paused && node[n].doing == in_database && has_ended(n) -> take_answer_of_database(n) }
  :: d_step { !node[n].paused && node[n].doing == answered -> take_answer_of_chain(n) }

  /* A late renewal, before any takeover. It does not wait for writers. */
  :: d_step { leads(n) && !lease_live && node[n].token == NEWEST -> lease_live = true }

  :: d_step { may_take_over(n) && lease_is_free -> take_over(n); printf("node %d takes over\n", n) }
  :: d_step { may_take_over(n) && lease_is_free && faults > 0 ->
       faults--;
       take_over(n);
       node[n].token = NONE;
       printf("node %d takes over and loses the answer\n", n) }
#ifndef NO_TERMINATE
  :: d_step { may_take_over(n) && holds_lease(0) -> terminate(0) }
  :: d_step { may_take_over(n) && holds_lease(1) -> terminate(1) }
  :: d_step { may_take_over(n) && holds_lease(ORPHAN) -> terminate(ORPHAN) }
#endif
  /* The node owns the lease and has forgotten it: it gets the same token back. */
  :: d_step { strays(n) && lease_owner == n -> get_lease(n); printf("node %d finds that it has the lease\n", n) }
  od
}

/* --- the chain ------------------------------------------------------------------------------------------------ */

/* The chain accepts the same transaction any number of times. It refuses a transaction that pays too little, or
   another one at a used nonce. One that pays more than the waiting one at its nonce replaces it. */
#define receive(x, h, verdict) \
  if \
  :: pool[nonce_in(x)] == signed_tx(x, h) -> verdict = accepted \
  :: pool[nonce_in(x)] != signed_tx(x, h) && \
     (nonce_in(x) < next_mined || (h == 1 && (price_is_high || pool[nonce_in(x)] != 0))) -> verdict = refused \
  :: else -> \
    printf("the chain accepts transaction %d, hash %d\n", x, h); \
    assert(one_hash_for_a_nonce_is_ever_out || ever[nonce_in(x)] == 0 || ever[nonce_in(x)] == signed_tx(x, h)); \
    pool[nonce_in(x)] = signed_tx(x, h); \
    ever[nonce_in(x)] = signed_tx(x, h); \
    verdict = accepted \
  fi

#define receive_call_of(n) \
  receive(node[n].call_tx, node[n].call_hash, node[n].answer); \
  node[n].doing = answered

/* At its nonce, so at most once. Without a claim, the hash is stored later or never. */
#ifdef BROADCAST_BEFORE_CLAIM
#define is_mined_now(x) (nonce[x] == next_mined && (hash[x] == 0 || signed_tx(x, hash[x]) == pool[next_mined]))
#else
#define is_mined_now(x) (nonce[x] == next_mined && signed_tx(x, hash[x]) == pool[next_mined])
#endif

mtype unread = unanswered; /* the answer to a late call */

proctype Chain() {
end:
  do
  :: d_step { node[0].doing == calling -> receive_call_of(0) }
  :: d_step { node[1].doing == calling -> receive_call_of(1) }
  :: d_step { late_hash != 0 ->
       receive(late_tx, late_hash, unread);
       unread = unanswered;
       late_tx = 0;
       late_hash = 0 }
  :: d_step { next_mined <= TXS && pool[next_mined] != 0 ->
       printf("the chain mines nonce %d\n", next_mined);
       assert(only_what_is_stored_is_mined || is_mined_now(0) || is_mined_now(1) || is_mined_now(2));
       next_mined++ }
  od
}

/* --- time and faults ------------------------------------------------------------------------------------------ */

#define owner_is_gone (lease_owner == DEAD || node[lease_owner].paused)

/* The lease of a dead or paused owner expires. A session without a client continues, or the server detects the loss
   (TCP keepalives) and rolls back. A paused node continues, unless it is stopped forever. The price falls again. */
proctype Time() {
end:
  do
  :: d_step { lease_live && owner_is_gone -> lease_live = false; printf("the lease expires\n") }
  :: d_step { is_open(ORPHAN) -> forget(ORPHAN); printf("the orphan is rolled back\n") }
  :: d_step { price_is_high -> price_is_high = false; printf("the price falls\n") }
  :: d_step { node[0].paused && !stopped -> node[0].paused = false; printf("node 0 continues\n") }
  :: d_step { node[1].paused && !stopped -> node[1].paused = false; printf("node 1 continues\n") }
  od
}

#define make_orphan_of(n) \
  db[ORPHAN].at = db[n].at; \
  db[ORPHAN].job = db[n].job; \
  db[ORPHAN].tx = db[n].tx; \
  db[ORPHAN].hash = db[n].hash; \
  db[ORPHAN].token = db[n].token; \
  db[ORPHAN].first = db[n].first; \
  db[ORPHAN].found = db[n].found; \
  db[ORPHAN].outdated = db[n].outdated

/* The job continues without its client, is rolled back, or had ended: the node cannot know which. */
#define lose_connection(n) \
  if \
  :: is_open(n) && db[ORPHAN].at == idle -> make_orphan_of(n) \
  :: true \
  fi; \
  forget(n); \
  node[n].doing = looking

/* The call arrives later, never, or has arrived: the node cannot know which. */
#define lose_call(n) \
  if \
  :: node[n].doing == calling && late_hash == 0 -> late_tx = node[n].call_tx; late_hash = node[n].call_hash \
  :: true \
  fi; \
  forget_call(n); \
  node[n].doing = looking

/* The node dies and restarts: a longer downtime looks like a slow node. Its memory is gone, its boot id is new. */
inline crash(n) {
  printf("node %d crashes\n", n);
  if
  :: node[n].doing == in_database -> lose_connection(n)
  :: node[n].doing == calling || node[n].doing == answered -> lose_call(n)
  :: else
  fi;
  node[n].token = NONE;
  stopped = (node[n].paused -> false : stopped);
  node[n].paused = false;
  lease_owner = (lease_owner == n -> DEAD : lease_owner)
}

#define a_node_is_paused (node[0].paused || node[1].paused)

#define FAULTS_OF(n) \
  :: atomic { faults > 0 -> faults--; crash(n) } \
  :: atomic { faults > 0 && node[n].doing == in_database -> \
       faults--; \
       printf("node %d loses its connection\n", n); \
       lose_connection(n) } \
  :: atomic { faults > 0 && (node[n].doing == calling || node[n].doing == answered) -> \
       faults--; \
       printf("node %d loses the answer to a call\n", n); \
       lose_call(n) } \
  :: atomic { faults > 0 && !a_node_is_paused -> \
       faults--; \
       printf("node %d is paused\n", n); \
       node[n].paused = true; \
       if \
       :: stopped = true \
       :: true \
       fi }

#define EVICTION(k) \
  :: d_step { faults > 0 && next_mined <= k && pool[k] != 0 -> faults--; pool[k] = 0; printf("evicted: nonce %d\n", k) }

proctype Demon() {
end:
  do
  FAULTS_OF(0)
  FAULTS_OF(1)
  EVICTION(1)
  EVICTION(2)
  EVICTION(3)
  :: d_step { faults > 0 && !price_is_high -> faults--; price_is_high = true; printf("the price rises\n") }
  :: d_step { faults > 0 && lease_live -> faults--; lease_live = false; printf("the lease expires too soon\n") }
  :: d_step { faults > 0 -> faults = 0 } /* no more faults */
  od
}

init {
  atomic {
    forget(0);
    forget(1);
    forget(ORPHAN);
    node[0].doing = looking;
    node[1].doing = looking;
    node[0].answer = unanswered;
    node[1].answer = unanswered;
    node[0].token = NEWEST;
    run DatabaseSession(0);
    run DatabaseSession(1);
    run DatabaseSession(ORPHAN);
    run NodeProcess(0);
    run NodeProcess(1);
    run Chain();
    run Time();
    run Demon()
  }
}

/* All finish, if faults are finite and each process that can always take a step takes one (pan -f: weak fairness). */
#ifdef LIVENESS
#define is_done(x) (x >= TXS || state[x] == confirmed || state[x] == rejected)
ltl all_finish { <> (is_done(0) && is_done(1) && is_done(2)) }
#endif
