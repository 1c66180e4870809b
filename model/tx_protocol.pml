/*
 * The money path of one signer: lease, fence, nonce, claim, broadcast, confirm.
 *
 * Two nodes and their database sessions, a client that asks for three transactions, a chain, and a demon that spends
 * FAULTS faults where it likes. Every step below is one thing that happens at once: a statement that takes its
 * locks, a commit, a call that arrives. Between any two of them anybody else may run for as long as they like, which
 * is what a pause, a slow network and a garbage collector look like from outside.
 *
 * What is promised stands in the assertions (search for "assert") and in the formula at the end. docs/correctness.md
 * says what is covered and what is not; run.sh checks it; the macros below break the protocol on purpose:
 *
 *   NO_LOCK                 the fence is a bare EXISTS: it looks at the lease and does not lock it
 *   PLAIN_UPDATE_TAKEOVER   the takeover is a plain UPDATE, which does not wait for a key-share lock
 *   STALE_SNAPSHOT          the create is one statement: its snapshot is older than its wait for the cursor
 *   BROADCAST_BEFORE_CLAIM  the hash is stored after the call, not before
 *   KEEP_TOKEN              a node that was fenced gets its old token back by renewing
 *   NO_BOOT_ID              a restarted node bears the name, and so the token, of the one that died
 *   NO_TERMINATE            the takeover waits for ever instead of ending the sessions of the expired owner
 */
#ifndef FAULTS
#define FAULTS 3
#endif

#define NODES    2
#define TXS      3 /* requests 0, 1, 2 of one signer; nonces and hashes count from 1, 0 is none */
#define ORPHAN   2 /* sessions 0 and 1 belong to the nodes; this one lost its client and runs on without it */
#define SESSIONS 3

/* --- PostgreSQL: what is committed ---------------------------------------------------------------------------- */

/* A token is a number that only grows. All that is ever asked is whether one is the newest, so that is what is kept:
   a takeover makes every token that is out there an old one. */
#define NONE   0
#define OLD    1
#define NEWEST 2

/* signer_lease. The owner is a node *process*: 0 and 1 are the two that run, DEAD is any that has died. */
#define DEAD 2
byte lease_owner = 0; /* by symmetry: node 0 was first */
bool lease_live = true; /* expires_at > clock_timestamp() */

byte cursor = 1; /* signer_nonce_cursor.next_nonce */

/* managed_tx. A hash is 1 or 2: what signing gives at the low and at the high price. */
mtype = {absent, allocated, tracking, confirmed};
mtype state[TXS] = absent;
byte nonce[TXS];
byte hash[TXS];       /* the newest attempt */
bool fresh[TXS]; /* not tracked yet, and only the newest token has claimed it */

/* --- PostgreSQL: the sessions --------------------------------------------------------------------------------- */

mtype = {nothing, create, claim, sign_anew, track, confirm};     /* jobs: one fenced transaction each */
mtype = {idle, asked, locked, written, committed, zero_rows, fenced}; /* how far it is, or how it ended */

typedef Session {
  mtype at;
  mtype job;
  byte tx;
  byte hash;
  byte token;
  bool found /* create: the request was there when the statement began */
};
Session db[SESSIONS];

#define is_open(s)   (db[s].at == asked || db[s].at == locked || db[s].at == written)
#define has_ended(s) (db[s].at == committed || db[s].at == zero_rows || db[s].at == fenced)

/* FOR KEY SHARE on the lease, from the check to the end of the transaction. */
#ifdef NO_LOCK
#define holds_lease(s) false
#else
#define holds_lease(s) (db[s].at == locked || db[s].at == written)
#endif
#define somebody_holds_lease (holds_lease(0) || holds_lease(1) || holds_lease(ORPHAN))

/* FOR UPDATE on the cursor (creates) and on a row of managed_tx (the others). */
#define locks_row(s, other) \
  (s != other && db[other].at == written && \
   (db[s].job == create -> db[other].job == create : db[other].job != create && db[other].tx == db[s].tx))
#define row_is_free(s) (!locks_row(s, 0) && !locks_row(s, 1) && !locks_row(s, ORPHAN))

/* --- the nodes: what is in their memory ----------------------------------------------------------------------- */

mtype = {looking, in_database, calling, answered};
mtype = {unanswered, accepted, refused};

typedef Node {
  mtype doing;
  byte token;   /* the lease it believes to hold; 0: none */
  byte unsure;  /* bit per transaction: a call whose answer was lost may still arrive somewhere */
  byte call_tx; /* eth_sendRawTransaction under way */
  byte call_hash;
  mtype answer;
  bool paused
};
Node node[NODES];
bool stopped; /* the node that is paused will never go on */

/* --- the client ----------------------------------------------------------------------------------------------- */

bool served[TXS]; /* it has its answer; until then it asks again, with the same request id, at any node */
byte asked_for;   /* requests are alike, so they are first asked for in order; they may overtake each other later */

/* --- the chain ------------------------------------------------------------------------------------------------ */

byte pool[TXS + 1]; /* by nonce: what was accepted, and stays as what was mined */
byte ever[TXS + 1]; /* by nonce: the only thing that was ever accepted */
byte next_mined = 1;
bool price_is_high = false;

byte late_tx; /* a call that its sender no longer waits for, still on its way */
byte late_hash;

#define signed_tx(x, h) (2 * (x) + (h))
#define is_mined(x)     (state[x] != absent && nonce[x] < next_mined)
#define is_out(x)       (is_mined(x) || pool[nonce[x]] != 0)

byte faults = FAULTS;

/* --- a fenced transaction, in the session --------------------------------------------------------------------- */

#define forget(s) \
  db[s].at = idle; \
  db[s].job = nothing; \
  db[s].tx = 0; \
  db[s].hash = 0; \
  db[s].token = NONE; \
  db[s].found = false

/* Nobody listens to an orphan; and where nothing was written, or no call follows, only how it ended matters. */
#define finish(s, result) \
  if \
  :: s == ORPHAN -> forget(s) \
  :: s != ORPHAN && result == committed && db[s].job != track && db[s].job != confirm -> \
    db[s].at = committed; \
    db[s].token = NONE \
  :: else -> forget(s); db[s].at = result \
  fi

/* What is asked under an old token can only be fenced, so it is, at once, whatever it was. */
#define fence_if_old(s) \
  if \
  :: db[s].at == asked && db[s].token == OLD -> finish(s, fenced) \
  :: else \
  fi

#define ask(n, what, x, h) \
  db[n].at = asked; \
  db[n].job = what; \
  db[n].tx = x; \
  db[n].hash = h; \
  db[n].token = node[n].token; \
  node[n].doing = in_database; \
  fence_if_old(n)

#define fence_holds(s) (lease_live && db[s].token == NEWEST)

/* Every call is claimed first: the first time with a new hash, later with the one that is stored. */
#define may_claim(x, h) \
  ((state[x] == allocated && (hash[x] == 0 || hash[x] == (h))) || (state[x] == tracking && hash[x] == (h)))

/* UPDATE … WHERE state = <from>: the guard is read after the wait for the row. */
#ifdef BROADCAST_BEFORE_CLAIM
#define was_claimed(x, h) true
#else
#define was_claimed(x, h) (hash[x] == (h))
#endif
#define from_state_holds(s, x) \
  ((db[s].job == claim && may_claim(x, db[s].hash)) || \
   (db[s].job == sign_anew && state[x] == allocated && hash[x] != db[s].hash && fresh[x]) || \
   (db[s].job == track && state[x] == allocated && was_claimed(x, db[s].hash)) || \
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
  :: db[s].job != create && from_state_holds(s, db[s].tx) -> db[s].at = written
  :: db[s].job != create && !from_state_holds(s, db[s].tx) -> finish(s, zero_rows)
  fi
}

inline commit(s) {
  assert(db[s].token == NEWEST); /* (2) no stale write: nobody has taken over since the check */
  if
  :: db[s].job == create ->
    assert(nonce[db[s].tx] == 0); /* (1) one nonce for a transaction */
    assert(nonce[0] != cursor && nonce[1] != cursor && nonce[2] != cursor); /* (1) one transaction for a nonce */
    nonce[db[s].tx] = cursor;
    state[db[s].tx] = allocated;
    cursor++
  :: db[s].job == claim ->
    fresh[db[s].tx] = (hash[db[s].tx] == 0 -> true : fresh[db[s].tx]);
    hash[db[s].tx] = db[s].hash
  :: db[s].job == sign_anew -> hash[db[s].tx] = db[s].hash
  :: db[s].job == track ->
    hash[db[s].tx] = db[s].hash;
    state[db[s].tx] = tracking;
    fresh[db[s].tx] = false
  :: db[s].job == confirm -> state[db[s].tx] = confirmed
  fi;
  /* (1) no gap below the cursor: as many nonces were given as it has moved */
  assert((nonce[0] != 0) + (nonce[1] != 0) + (nonce[2] != 0) == cursor - 1);
  finish(s, committed)
}

/* A paused client holds up its session: the rest of the pipeline has not been sent. */
#define runs(s) (s == ORPHAN || !node[s].paused)

proctype DatabaseSession(byte s) {
end:
  do
  :: d_step { db[s].at == asked && runs(s) ->
#ifdef STALE_SNAPSHOT
       db[s].found = (db[s].job == create && nonce[db[s].tx] != 0);
#endif
       if
       :: fence_holds(s) -> db[s].at = locked
       :: else -> finish(s, fenced)
       fi }
  :: d_step { db[s].at == locked && runs(s) && row_is_free(s) -> write(s) }
  :: d_step { db[s].at == written && runs(s) -> commit(s) }
  od
}

/* --- a node --------------------------------------------------------------------------------------------------- */

/* Pausing is being overtaken, at any of these steps; the flag makes it last, so that liveness cannot wait for it. */
#define awake(n)  (!node[n].paused)
#define leads(n)  (awake(n) && node[n].doing == looking && node[n].token != NONE)
#define strays(n) (awake(n) && node[n].doing == looking && node[n].token == NONE)

inline get_token(n) {
  lease_owner = n;
  lease_live = true;
  node[n].token = NEWEST;
  node[n].unsure = 0
}

#define age(token) token = (token == NEWEST -> OLD : token)

inline take_over(n) {
  age(node[0].token);
  age(node[1].token);
  age(db[0].token);
  age(db[1].token);
  age(db[ORPHAN].token);
  fresh[0] = false;
  fresh[1] = false;
  fresh[2] = false;
  fence_if_old(0);
  fence_if_old(1);
  fence_if_old(ORPHAN);
  get_token(n)
}

/* The clock has run out for the owner; or it is this very process, which lost its memory of the lease. */
#define may_take_over(n) (!lease_live || lease_owner == n)
#ifdef PLAIN_UPDATE_TAKEOVER
#define takeover_need_not_wait true
#else
#define takeover_need_not_wait (!somebody_holds_lease)
#endif

/* The client of a session that is gone will look, and never repeats a write that it does not know the fate of. */
inline lose_session(s) {
  forget(s);
  if
  :: s != ORPHAN -> node[s].doing = looking
  :: else
  fi
}

#define call(n, x, h) \
  node[n].call_tx = x; \
  node[n].call_hash = h; \
  node[n].doing = calling

inline take_answer_of_database(n) {
  node[n].doing = looking;
  if
  :: db[n].job == create -> served[db[n].tx] = true
  :: db[n].job == claim || db[n].job == sign_anew -> call(n, db[n].tx, db[n].hash)
  :: db[n].at == fenced -> node[n].token = NONE; node[n].unsure = 0
  :: else
  fi;
  forget(n)
}

#define forget_call(n) \
  node[n].call_tx = 0; \
  node[n].call_hash = 0; \
  node[n].answer = unanswered

#define price_hash (price_is_high -> 2 : 1)
#define nothing_is_out(n, x) \
  (fresh[x] && (node[n].unsure & (1 << (x))) == 0 && hash[x] != price_hash)

/* Accepted: TRACKING. Refused, and this token has stored the hash and lost no answer about it: sign it anew. */
inline take_answer_of_chain(n) {
  if
  :: node[n].answer == accepted -> ask(n, track, node[n].call_tx, node[n].call_hash)
  :: node[n].answer == refused && nothing_is_out(n, node[n].call_tx) ->
    ask(n, sign_anew, node[n].call_tx, price_hash)
  :: else -> node[n].doing = looking
  fi;
  forget_call(n)
}

#define hash_to_send(x) (hash[x] == 0 -> price_hash : hash[x])
#define should_send(x)  (state[x] == allocated || (state[x] == tracking && !is_out(x)))

#ifdef BROADCAST_BEFORE_CLAIM
#define send(n, x) call(n, x, hash_to_send(x))
#else
#define send(n, x) ask(n, claim, x, hash_to_send(x))
#endif

/* What a leader finds to do for transaction x by looking into the database and at the chain. */
#define WORK(n, x) \
  :: d_step { leads(n) && !served[x] && x <= asked_for -> \
       asked_for = (x == asked_for -> x + 1 : asked_for); ask(n, create, x, 0) } \
  :: d_step { leads(n) && should_send(x) -> send(n, x) } \
  :: d_step { leads(n) && state[x] == tracking && is_mined(x) -> ask(n, confirm, x, 0) }

proctype NodeProcess(byte n) {
end:
  do
  WORK(n, 0)
  WORK(n, 1)
  WORK(n, 2)
  :: d_step { awake(n) && node[n].doing == in_database && has_ended(n) -> take_answer_of_database(n) }
  :: d_step { awake(n) && node[n].doing == answered -> take_answer_of_chain(n) }

  /* A renewal that comes late but before anybody else. It waits for no writer. */
  :: d_step { leads(n) && !lease_live && node[n].token == NEWEST -> lease_live = true }

  :: d_step { strays(n) && may_take_over(n) && takeover_need_not_wait -> take_over(n) }
  /* The same, and its answer is lost. */
  :: d_step { strays(n) && may_take_over(n) && takeover_need_not_wait && faults > 0 ->
       faults--; take_over(n); node[n].token = NONE }
#ifndef NO_TERMINATE
  :: d_step { strays(n) && may_take_over(n) && holds_lease(0) -> lose_session(0) }
  :: d_step { strays(n) && may_take_over(n) && holds_lease(1) -> lose_session(1) }
  :: d_step { strays(n) && may_take_over(n) && holds_lease(ORPHAN) -> lose_session(ORPHAN) }
#endif
#if defined(KEEP_TOKEN) || defined(NO_BOOT_ID)
  :: d_step { strays(n) && lease_owner == n -> get_token(n) }
#endif
  od
}

/* --- the chain ------------------------------------------------------------------------------------------------ */

/* One transaction per nonce, the same one any number of times; one that pays too little is refused at the door. */
inline receive(x, h, verdict) {
  if
  :: pool[nonce[x]] == signed_tx(x, h) -> verdict = accepted /* known, or nonce too low and it is ours that was mined */
  :: pool[nonce[x]] != signed_tx(x, h) && (nonce[x] < next_mined || (h == 1 && (price_is_high || pool[nonce[x]] != 0))) ->
    verdict = refused
  :: else ->
    assert(ever[nonce[x]] == 0 || ever[nonce[x]] == signed_tx(x, h)); /* (3) one hash per nonce is ever out */
    pool[nonce[x]] = signed_tx(x, h);
    ever[nonce[x]] = signed_tx(x, h);
    verdict = accepted
  fi
}

#define miner_knows(x) (nonce[x] == next_mined && signed_tx(x, hash[x]) == pool[next_mined])

mtype unheard;

active proctype Chain() {
end:
  do
  :: d_step { node[0].doing == calling ->
       receive(node[0].call_tx, node[0].call_hash, node[0].answer); node[0].doing = answered }
  :: d_step { node[1].doing == calling ->
       receive(node[1].call_tx, node[1].call_hash, node[1].answer); node[1].doing = answered }
  :: d_step { late_hash != 0 -> receive(late_tx, late_hash, unheard); unheard = unanswered; late_tx = 0; late_hash = 0 }
  :: d_step { next_mined <= TXS && pool[next_mined] != 0 ->
       /* (3) only what is stored is mined; and since a nonce belongs to one transaction, each at most once */
       assert(miner_knows(0) || miner_knows(1) || miner_knows(2));
       next_mined++ }
  :: d_step { price_is_high -> price_is_high = false }
  od
}

/* --- time and faults ------------------------------------------------------------------------------------------ */

/* What runs on after its client is gone, if there is room to remember it; else it is rolled back. */
inline orphan(n) {
  d_step {
    db[ORPHAN].at = db[n].at;
    db[ORPHAN].job = db[n].job;
    db[ORPHAN].tx = db[n].tx;
    db[ORPHAN].hash = db[n].hash;
    db[ORPHAN].token = db[n].token;
    db[ORPHAN].found = db[n].found
  }
}

inline lose_connection(n) {
  if
  :: is_open(n) && db[ORPHAN].at == idle -> orphan(n)
  :: true
  fi;
  forget(n);
  node[n].doing = looking
}

inline lose_call(n) {
  if
  :: node[n].doing == calling && late_hash == 0 -> late_tx = node[n].call_tx; late_hash = node[n].call_hash
  :: true
  fi;
  forget_call(n);
  node[n].doing = looking
}

/* It dies and is started again at once: being down is being slow. Its memory is gone, its boot id is another. */
inline crash(n) {
  if
  :: node[n].doing == in_database -> lose_connection(n)
  :: node[n].doing == calling || node[n].doing == answered -> lose_call(n)
  :: else
  fi;
  node[n].token = NONE;
  node[n].unsure = 0;
  node[n].paused = false;
#ifndef NO_BOOT_ID
  if
  :: lease_owner == n -> lease_owner = DEAD
  :: else
  fi
#endif
}

#define FAULTS_OF(n) \
  :: atomic { faults > 0 -> faults--; crash(n) } \
  :: atomic { faults > 0 && node[n].doing == in_database -> faults--; lose_connection(n) } \
  :: atomic { faults > 0 && (node[n].doing == calling || node[n].doing == answered) -> \
       faults--; node[n].unsure = node[n].unsure | (1 << node[n].call_tx); lose_call(n) } \
  :: d_step { faults > 0 && !node[0].paused && !node[1].paused -> faults--; node[n].paused = true } \
  :: d_step { faults > 0 && !node[0].paused && !node[1].paused -> faults--; node[n].paused = true; stopped = true }

#define evict(k) \
  :: d_step { faults > 0 && next_mined <= k && pool[k] != 0 -> faults--; pool[k] = 0 }

active proctype Demon() {
end:
  do
  FAULTS_OF(0)
  FAULTS_OF(1)
  evict(1)
  evict(2)
  evict(3)
  :: d_step { faults > 0 && !price_is_high -> faults--; price_is_high = true }
  :: d_step { faults > 0 && lease_live -> faults--; lease_live = false } /* although its owner runs: renewal came too late */
  :: d_step { faults > 0 -> faults = 0 } /* enough */
  od
}

#define owner_is_gone (lease_owner == DEAD || node[lease_owner].paused)

active proctype Clock() {
end:
  do
  :: d_step { lease_live && owner_is_gone -> lease_live = false }
  od
}

/* A node that is paused may go on at any time; one that is stopped never does. */
active proctype Alarm() {
end:
  do
  :: d_step { node[0].paused && !stopped -> node[0].paused = false }
  :: d_step { node[1].paused && !stopped -> node[1].paused = false }
  od
}

/* A session whose client is gone runs on, or the server notices (TCP keepalive) and rolls back. */
active proctype Keepalive() {
end:
  do
  :: d_step { is_open(ORPHAN) -> forget(ORPHAN) }
  od
}

init {
  atomic {
    byte i = 0;
    do
    :: i < SESSIONS -> forget(i); i++
    :: else -> break
    od;
    node[0].doing = looking;
    node[1].doing = looking;
    node[0].answer = unanswered;
    node[1].answer = unanswered;
    node[0].token = NEWEST;
    unheard = unanswered;
    run DatabaseSession(0);
    run DatabaseSession(1);
    run DatabaseSession(ORPHAN);
    run NodeProcess(0);
    run NodeProcess(1)
  }
}

/* (4) All finish, if every process that can go on does so in the end and faults are finite. */
#ifdef LIVENESS
ltl all_finish { <> (state[0] == confirmed && state[1] == confirmed && state[2] == confirmed) }
#endif
