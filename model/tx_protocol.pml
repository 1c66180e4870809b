/*
 * The money path of one signer: lease, fence, nonce, claim, broadcast, confirm.
 *
 * Two nodes and their database sessions, a client that asks for three transactions, a chain, and a demon that spends
 * FAULTS faults where it likes. Every step below happens at once: a statement that takes its locks, a commit, a call
 * that arrives. Between any two of them everybody else may run for as long as they like, which is what a pause, a slow
 * network and a full disk look like from outside.
 *
 * The promises have names; what keeps them are the assertions, and the formula at the end. docs/correctness.md says what
 * is covered and what is not; run.sh checks it. These macros break the protocol on purpose, one each:
 *
 *   NO_LOCK                 the fence is a bare EXISTS: it looks at the lease and does not lock it
 *   PLAIN_UPDATE_TAKEOVER   the takeover is a plain UPDATE, which does not wait for a key-share lock
 *   NO_TERMINATE            the takeover waits, and never ends the sessions of the expired owner
 *   STALE_SNAPSHOT          the create is one statement: its snapshot is older than its wait for the cursor
 *   BROADCAST_BEFORE_CLAIM  the hash is stored after the call, not before
 *   UNCLAIMED_RESEND        bytes that are stored already are sent again without a fenced write first
 *   UNCOUNTED_CLAIMS        noting a refusal does not look whether the row was claimed once more in between
 *   REFUSAL_STAYS           bytes that were refused are claimed again, and the row still says that nobody has them
 */
#ifndef FAULTS
#define FAULTS 2
#endif

#ifndef TXS
#define TXS 3
#endif

#define MOST   3 /* requests 0, 1, 2 of one signer; nonces and hashes count from 1, and 0 is none */
#define ORPHAN 2 /* sessions 0 and 1 belong to the nodes; this one has lost its client and runs on without it */

/* The promises. None is ever set: their names stand in the assertions, so that a counter-example says what it broke. */
bool one_nonce_for_a_transaction, one_transaction_for_a_nonce, no_gap_below_the_cursor;
bool no_stale_write;
bool one_hash_for_a_nonce_is_ever_out, only_what_is_stored_is_mined;
bool what_is_told_is_stored;

/* --- PostgreSQL: what is committed ---------------------------------------------------------------------------- */

/* A fencing token is a number that only grows. All that is ever asked is whether one is the newest, so that is what
   is kept: a takeover makes every token that is out there an old one. */
#define NONE   0
#define OLD    1
#define NEWEST 2

/* signer_lease. An owner is a node's process: 0 and 1 are the two that run, DEAD is any that has died. */
#define DEAD 2
byte lease_owner = 0;   /* by symmetry: node 0 was first */
bool lease_live = true; /* expires_at > clock_timestamp() */

/* signer_nonce_cursor */
byte cursor = 1;

/* managed_tx. Hash 1 is what signing gives at the low price, hash 2 at the high one. */
mtype = {absent, allocated, tracking, confirmed};
mtype state[MOST] = absent;
byte nonce[MOST];
byte hash[MOST];
bool is_refused[MOST]; /* the attempt's outcome: whoever was asked said no, so nobody has it and it may be signed anew */

/* --- PostgreSQL: the sessions --------------------------------------------------------------------------------- */

mtype = {nothing, create, claim, refuse, track, confirm};             /* jobs: one fenced transaction each */
mtype = {idle, asked, locked, written, committed, zero_rows, fenced}; /* how far it is, or how it ended */

typedef Session {
  mtype at;
  mtype job;
  byte tx;
  byte hash;
  byte token;
  bool first;   /* claim, as it ends: nobody can have it yet */
  bool found;   /* create: the request was there when the statement began */
  bool outdated /* refuse: another claim came in between (the row counts them) */
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

/* Creates lock the cursor, the others a row of managed_tx. */
#define blocks(other, s) \
  (other != s && db[other].at == written && \
   (db[s].job == create -> db[other].job == create : db[other].job != create && db[other].tx == db[s].tx))
#define row_is_free(s) (!blocks(0, s) && !blocks(1, s) && !blocks(ORPHAN, s))

/* --- the nodes: what is in their memory ----------------------------------------------------------------------- */

mtype = {looking, in_database, calling, answered};
mtype = {unanswered, accepted, refused};

typedef Node {
  mtype doing;
  byte token;      /* of the lease that it believes to hold */
  byte call_tx;    /* eth_sendRawTransaction: from the decision to the answer */
  byte call_hash;
  bool call_first; /* nobody can have had it before */
  mtype answer;
  bool paused
};
Node node[2];
bool stopped; /* the node that is paused never goes on */

/* --- the client and the chain --------------------------------------------------------------------------------- */

bool served[MOST]; /* the client has its answer; until then it asks again, with the same request id */

byte pool[MOST + 1]; /* by nonce: what was accepted, and below next_mined what was mined */
byte ever[MOST + 1]; /* by nonce: what was ever accepted */
byte next_mined = 1;
bool price_is_high;

byte late_tx; /* a call that nobody waits for any more, still on its way */
byte late_hash;

#define price_hash      (price_is_high -> 2 : 1)
#define signed_tx(x, h) (2 * (x) + (h))
#define is_mined(x)     (state[x] != absent && nonce[x] < next_mined)
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

/* Nobody listens to an orphan. The others are told what the node needs to go on. */
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

/* What is asked under an old token can only be fenced, so it is, at once, whatever it was. */
#define fence_if_old(s) \
  if \
  :: db[s].at == asked && db[s].token == OLD -> finish(s, fenced) \
  :: else \
  fi

#define fence_holds(s) (lease_live && db[s].token == NEWEST)

/* UPDATE … WHERE state = <from>: the guard is read after the wait for the row. */
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
#define guard_holds(s, x, h) \
  ((db[s].job == claim && state[x] == allocated && (hash[x] == 0 || hash[x] == h || is_refused[x])) || \
   (db[s].job == claim && state[x] == tracking && hash[x] == h) || \
   (db[s].job == refuse && state[x] == allocated && hash[x] == h && !is_outdated(s)) || \
   (db[s].job == track && state[x] == allocated && is_stored(x, h)) || \
   (db[s].job == confirm && state[x] == tracking))

#ifdef STALE_SNAPSHOT
#define already_there(s) db[s].found
#else
#define already_there(s) (nonce[db[s].tx] != 0)
#endif

inline write(s) {
  if
  :: db[s].job == create && already_there(s) -> finish(s, committed) /* the existing one is the answer */
  :: db[s].job == create && !already_there(s) -> db[s].at = written
  :: db[s].job != create && guard_holds(s, db[s].tx, db[s].hash) -> db[s].at = written
  :: db[s].job != create && !guard_holds(s, db[s].tx, db[s].hash) -> finish(s, zero_rows)
  fi
}

inline give_nonce(x) {
  assert(one_nonce_for_a_transaction || nonce[x] == 0);
  assert(one_transaction_for_a_nonce || (nonce[0] != cursor && nonce[1] != cursor && nonce[2] != cursor));
  nonce[x] = cursor;
  state[x] = allocated;
  cursor++;
  assert(no_gap_below_the_cursor || (nonce[0] != 0) + (nonce[1] != 0) + (nonce[2] != 0) == cursor - 1)
}

#define outdate(other, s) \
  db[other].outdated = (db[other].outdated || (db[other].job == refuse && db[other].tx == db[s].tx))

inline commit(s) {
  printf("session %d commits job %e of transaction %d, hash %d\n", s, db[s].job, db[s].tx, db[s].hash);
  assert(no_stale_write || db[s].token == NEWEST); /* nobody has taken over since the check */
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
  fi;
  finish(s, committed)
}

/* A paused client holds up its session: the rest of the pipeline has not been sent. */
#define runs(s) (s == ORPHAN || !node[s].paused)

proctype DatabaseSession(byte s) {
end:
  do
  :: d_step { db[s].at == asked && runs(s) ->
       if
       :: fence_holds(s) ->
         printf("session %d passes the fence with job %e of transaction %d\n", s, db[s].job, db[s].tx);
#ifdef STALE_SNAPSHOT
         db[s].found = (db[s].job == create && nonce[db[s].tx] != 0);
#endif
         db[s].at = locked
       :: else -> finish(s, fenced)
       fi }
  :: d_step { db[s].at == locked && runs(s) && row_is_free(s) -> write(s) }
  :: d_step { db[s].at == written && runs(s) -> commit(s) }
  od
}

/* --- a node --------------------------------------------------------------------------------------------------- */

/* Being overtaken by everybody, at any of these steps, is what a pause is; the flag makes it last. */
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

/* The fence first: FENCED means stop, and drop what is in memory. A call is made by who has just claimed it. */
inline take_answer_of_database(n) {
  node[n].doing = looking;
  if
  :: db[n].at == fenced -> node[n].token = NONE; printf("node %d is fenced\n", n)
  :: db[n].at == committed && db[n].job == create ->
    assert(what_is_told_is_stored || nonce[db[n].tx] != 0);
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

/* The owner's time is up. FOR UPDATE waits for key shares. */
#define may_take_over(n) (strays(n) && !lease_live)
#ifdef PLAIN_UPDATE_TAKEOVER
#define lease_is_free true
#else
#define lease_is_free (!holds_lease(0) && !holds_lease(1) && !holds_lease(ORPHAN))
#endif

/* pg_terminate_backend: its client, if there is one, will look, and never repeats a write of unknown fate. */
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

/* Requests that nobody has begun to serve are alike: by symmetry the lowest is taken. */
#define creates(s, x) (is_open(s) && db[s].job == create && db[s].tx == (x))
#define is_begun(x)   (state[x] != absent || creates(0, x) || creates(1, x) || creates(ORPHAN, x))
#define comes_next(x) (is_begun(x) || (((x) < 1 || is_begun(0)) && ((x) < 2 || is_begun(1))))

/* What a leader finds to do for transaction x by looking into the database and at the chain. */
#define WORK(n, x) \
  :: d_step { leads(n) && !served[x] && x < TXS && comes_next(x) -> ask(n, create, x, 0) } \
  :: d_step { leads(n) && should_send(x) -> send(n, x) } \
  :: d_step { leads(n) && state[x] == tracking && is_mined(x) -> ask(n, confirm, x, 0) }

proctype NodeProcess(byte n) {
end:
  do
  WORK(n, 0)
  WORK(n, 1)
  WORK(n, 2)
  :: d_step { !node[n].paused && node[n].doing == in_database && has_ended(n) -> take_answer_of_database(n) }
  :: d_step { !node[n].paused && node[n].doing == answered -> take_answer_of_chain(n) }

  /* A renewal that comes late, and before anybody else. It waits for no writer. */
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
  /* The lease is its own, but it has forgotten: it gets the same token back. */
  :: d_step { strays(n) && lease_owner == n -> get_lease(n); printf("node %d finds that it has the lease\n", n) }
  od
}

/* --- the chain ------------------------------------------------------------------------------------------------ */

/* The same transaction any number of times; another one at its nonce, or one that pays too little, is refused,
   unless it pays more than what is waiting there: then it replaces it. */
#define receive(x, h, verdict) \
  if \
  :: pool[nonce[x]] == signed_tx(x, h) -> verdict = accepted \
  :: pool[nonce[x]] != signed_tx(x, h) && \
     (nonce[x] < next_mined || (h == 1 && (price_is_high || pool[nonce[x]] != 0))) -> verdict = refused \
  :: else -> \
    printf("the chain accepts transaction %d, hash %d\n", x, h); \
    assert(one_hash_for_a_nonce_is_ever_out || ever[nonce[x]] == 0 || ever[nonce[x]] == signed_tx(x, h)); \
    pool[nonce[x]] = signed_tx(x, h); \
    ever[nonce[x]] = signed_tx(x, h); \
    verdict = accepted \
  fi

#define receive_call_of(n) \
  receive(node[n].call_tx, node[n].call_hash, node[n].answer); \
  node[n].doing = answered

/* At its nonce, and so at most once. Without a claim the hash is stored later, at best. */
#ifdef BROADCAST_BEFORE_CLAIM
#define is_mined_now(x) (nonce[x] == next_mined && (hash[x] == 0 || signed_tx(x, hash[x]) == pool[next_mined]))
#else
#define is_mined_now(x) (nonce[x] == next_mined && signed_tx(x, hash[x]) == pool[next_mined])
#endif

mtype nobody = unanswered;

proctype Chain() {
end:
  do
  :: d_step { node[0].doing == calling -> receive_call_of(0) }
  :: d_step { node[1].doing == calling -> receive_call_of(1) }
  :: d_step { late_hash != 0 ->
       receive(late_tx, late_hash, nobody);
       nobody = unanswered;
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

/* The lease of an owner that is gone expires. A session whose client is gone runs on, or the server notices (TCP
   keepalives) and rolls back. A node that is paused goes on, unless it is stopped for good. The price falls again. */
proctype Time() {
end:
  do
  :: d_step { lease_live && owner_is_gone -> lease_live = false; printf("the lease expires\n") }
  :: d_step { is_open(ORPHAN) -> forget(ORPHAN); printf("the orphan is rolled back\n") }
  :: d_step { price_is_high -> price_is_high = false; printf("the price falls\n") }
  :: d_step { node[0].paused && !stopped -> node[0].paused = false; printf("node 0 goes on\n") }
  :: d_step { node[1].paused && !stopped -> node[1].paused = false; printf("node 1 goes on\n") }
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

/* What was asked runs on without its client, is rolled back, or had ended: the node cannot tell. */
#define lose_connection(n) \
  if \
  :: is_open(n) && db[ORPHAN].at == idle -> make_orphan_of(n) \
  :: true \
  fi; \
  forget(n); \
  node[n].doing = looking

/* What was sent arrives later, never, or has arrived: the node cannot tell. */
#define lose_call(n) \
  if \
  :: node[n].doing == calling && late_hash == 0 -> late_tx = node[n].call_tx; late_hash = node[n].call_hash \
  :: true \
  fi; \
  forget_call(n); \
  node[n].doing = looking

/* It dies and is started again: being down for a while is being slow. Its memory is gone, its boot id is another. */
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

#define somebody_is_paused (node[0].paused || node[1].paused)

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
  :: atomic { faults > 0 && !somebody_is_paused -> \
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
  :: d_step { faults > 0 -> faults = 0 } /* enough */
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

/* All finish, if faults are finite and whoever could always go on does so at last (pan -f: weak fairness). */
#ifdef LIVENESS
#define is_done(x) (x >= TXS || state[x] == confirmed)
ltl all_finish { <> (is_done(0) && is_done(1) && is_done(2)) }
#endif
