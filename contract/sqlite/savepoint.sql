-- savepoint: work that is undone as a whole where it fails or comes out short, while the transaction goes on.
-- In:  nothing. Run `begin` before it; after it `end`, with `undo` before that where nothing of it is to stay.
-- Out: nothing.

-- @statement begin
savepoint millpond

-- @statement undo
rollback to millpond

-- @statement end
release millpond
