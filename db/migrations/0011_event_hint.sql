-- A commit that appends to the log wakes the nodes that deliver events. PostgreSQL merges equal notifications of one
-- transaction, so a commit sends one, however many rows it appends. Only a hint: nodes also look by query.
CREATE FUNCTION event_hint() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('event_log', '');
  RETURN NULL;
END $$;

CREATE TRIGGER event_is_announced AFTER INSERT ON event
  FOR EACH STATEMENT EXECUTE FUNCTION event_hint();
