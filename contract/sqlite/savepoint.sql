-- savepoint: work that is undone as a whole where it fails or comes out short, while the transaction goes on.
-- In:  nothing. Run `begin` before it; after it `end`, with `undo` before that where nothing of it is to stay.
-- Out: of `file`: where the connection's main database is; '': in memory.

-- @statement begin
savepoint millpond

-- @statement undo
rollback to millpond

-- @statement end
release millpond

-- @statement file
select file from pragma_database_list where name = 'main'
