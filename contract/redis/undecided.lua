-- What scripts share that meet jobs of graphs which are not decided. It needs the keys parents, graphs, staged.

-- own: the caller's graph, or nil. @return `held`, the graph of the job and the part that decides, a list, if it is another one; else nil
local function undecided(K, id, own)
  if redis.call('EXISTS', K.graphs) == 0 then return nil end
  local graph = string.sub(redis.call('HGET', K.parents, id) or '', 2, 17)
  local staged = graph ~= own and redis.call('ZSCORE', K.graphs, graph) and redis.call('HGET', K.staged, graph)
  return staged and { 'held', graph, string.sub(staged, 3, 2 + string.byte(staged, 2)) } or nil
end
