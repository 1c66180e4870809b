-- A transaction may append to the log without waking the nodes (SET LOCAL fencepost.hints = 'off'), if the caller wakes the
-- nodes after the commit. PostgreSQL commits transactions that notify one after the other: the lock that keeps
-- notifications in order is held until the WAL is flushed.
DROP TRIGGER event_is_announced ON event;
CREATE TRIGGER event_is_announced AFTER INSERT ON event
  FOR EACH STATEMENT WHEN (coalesce(current_setting('fencepost.hints', true), '') <> 'off')
  EXECUTE FUNCTION event_hint();
