-- What scripts with a filter share: a map, in the names of contract/operations.md.

-- Whether the job passes the filters of its error.
local function error_passes(K, filter, id)
  local packed = redis.call('HGET', K.errors, id)
  local is_read, failure = pcall(cmsgpack.unpack, packed or '')
  if not packed or not is_read or type(failure) ~= 'table' then return false end
  if filter.errorCode and failure[1] ~= filter.errorCode then return false end
  return not filter.errorText or string.find(failure[3] or '', filter.errorText, 1, true) ~= nil
end

-- The job passes all filters but those of its error.
local function record_passes(filter, record)
  local at, list = cmsgpack.unpack_one(record)
  if filter.group and (list[5] or '') ~= filter.group or filter.key and list[7] ~= filter.key then return false end
  if filter.pushedFrom and list[2] < filter.pushedFrom or filter.pushedBefore and list[2] >= filter.pushedBefore then return false end
  local JSON = 48
  return not filter.text or string.byte(record, at + 1) == JSON and string.find(record, filter.text, at + 2, true) ~= nil
end
