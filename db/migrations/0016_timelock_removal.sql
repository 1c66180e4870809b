-- A contract that is being removed: users no longer see it, nothing of it is scanned, announced or moved by time, and its
-- flows and events are deleted in parts. The row goes last, so that a removal that was interrupted is finished.
ALTER TABLE timelock
  ADD COLUMN removing_at timestamptz NULL,
  ADD CHECK (removing_at IS NULL OR (halted_block IS NOT NULL AND history_done_at IS NOT NULL));
