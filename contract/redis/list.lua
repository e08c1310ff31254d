-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include described.lua
-- @include ordered.lua
-- @include filter.lua
-- list: a queue's jobs in one state, a page at a time.
-- Head: state, limit, after, filter. after: nil: from the first; else where the last job of the page before stood: [priority, place, time].
--       The time is when it is due, when its lease ends, or when it finished. filter: nil, or a map, in the names of
--       contract/operations.md.
-- In:  that job's id. It need not be there any more.
-- Out: [more, last, item...]: fourteen items per job, as in described.lua. more: 0: the list ends here; 1: it may go on; 2: it goes on, and
--      this was a short look, since jobs are large. last: 1: the last job does not pass the filter, and only tells where the look ended.
--      Waiting jobs in the order of claiming, blocked ones by place, scheduled ones soonest first, running ones by lease, final ones
--      newest first.
-- Invariant: looks at `limit` jobs at most, and costs them and a search, however deep it is.

local filter = HEAD[8]
local out = { 0, 0 }

local function passes(id, record)
  if not record_passes(filter, record) then return false end
  return not (filter.errorCode or filter.errorText) or error_passes(filter, redis.call('HGET', K.errors, id))
end

local function put_all(ids)
  local left = describe_all(out, ids, filter and passes)
  out[1] = left > 0 and 2 or #ids == limit and 1 or 0
  local last = ids[#ids - left]
  if filter and last and out[#out - 13] ~= last then
    describe(out, last, redis.call('HGET', K.jobs, last), redis.call('HGET', K.states, last))
    out[2] = 1
  end
end

put_all(ids_of_page())
return out
