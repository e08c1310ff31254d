-- A queue's limits and rates: contract/operations.md, "Limits and turns". All in one function, so that a queue without limits pays nothing
-- for it. Use: `local limits = limits_of(grouped)`; what it changes of the queue, and of groups (`grouped.lua`), is written by
-- `limits.save()`. Stays at the queue in which it was called.

-- @return the end and the length of the pause that holds, with a new one of `length` ms. A pause counts no further ahead than its length.
local function paused_with(until_time, its_length, length)
  local left = math.min(until_time - NOW, its_length)
  if length > left then return NOW + length, length end
  return NOW + left, its_length
end

local function limits_of(grouped)
  local K = K
  local set, kept = {}, redis.call('HGETALL', K.limits)
  for i = 1, #kept, 2 do set[kept[i]] = kept[i + 1] end
  local function rate_in(name) return set[name] and cmsgpack.unpack(set[name]) or false end
  local running, group_running = tonumber(set.running) or false, tonumber(set.groupRunning) or false
  local rate, group_rate = rate_in('rate'), rate_in('groupRate')
  local full, full_cost = tonumber(set.full) or 0, tonumber(set.fullCost) or 1
  local paused_until, pause_length = tonumber(set.pausedUntil) or 0, tonumber(set.pauseLength) or 0
  local virtual = set.virtual and cmsgpack.unpack(set.virtual) or { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
  local runs = redis.call('ZCARD', K.running)
  -- bounded: a start may use up what the queue allows. limited: also by limits of all groups.
  local L = { bounded = running or rate, limited = running or rate or group_rate, virtual = virtual, hash = set }
  L.settings = { running, rate, grouped, group_running, group_rate }

  -- Rates: times in microseconds.
  local function step_of(of) return math.ceil(of[2] * 1000 / of[1]) end

  local function burst_of(of) return of[3] or math.max(1, math.floor(of[1] * 100 / of[2])) end

  -- What they count as: after a change of the rate or a step back of the clock they may lie further ahead. Claims store it.
  function L.bound(of, its_full, its_cost, until_time, its_length)
    if of then its_full = math.min(its_full, NOW * 1000 + math.max(burst_of(of), its_cost) * step_of(of)) end
    return its_full, math.min(until_time, NOW + its_length)
  end

  -- Milliseconds until a rate and a pause allow a start.
  function L.wait_for(of, its_full, until_time, cost)
    local wait = until_time > NOW and until_time - NOW or 0
    if not of then return wait end
    return math.max(wait, math.ceil((its_full - (math.max(burst_of(of), cost) - cost) * step_of(of)) / 1000) - NOW)
  end

  function L.keep_bound()
    local its_full, until_time = L.bound(rate, full, full_cost, paused_until, pause_length)
    L.changed = L.changed or its_full ~= full or until_time ~= paused_until
    full, paused_until = its_full, until_time
  end

  function L.full_after(of, its_full, cost)
    return of and math.max(its_full, NOW * 1000) + cost * step_of(of) or its_full
  end

  local function full_without(of, its_full, started, cost)
    if not of then return its_full end
    local taken = cost * step_of(of)
    return its_full - math.min(taken, math.max(0, started * 1000 + taken - NOW * 1000))
  end

  -- @return ms until the queue may start a job of this cost; false: as many run as may
  function L.startable(cost)
    if running and runs >= running then return false end
    local its_full, until_time = L.bound(rate, full, full_cost, paused_until, pause_length)
    return L.wait_for(rate, its_full, until_time, cost)
  end

  -- @return how many jobs may start at once, as far as `running` goes
  function L.free() return running and math.max(0, running - runs) or math.huge end

  -- So many jobs start; where the queue has a rate, one of this cost.
  function L.start(count, cost)
    runs = runs + count
    if rate then full, full_cost, L.changed = L.full_after(rate, full, cost), cost, true end
  end

  function L.pause(name, length)
    if grouped and name then
      local group = L.group(name)
      group.paused_until, group.pause_length = paused_with(group.paused_until, group.pause_length, length)
      group.changed = true
    else
      paused_until, pause_length = paused_with(paused_until, pause_length, length)
      L.changed = true
    end
  end

  function L.give_back(name, started, cost)
    full = full_without(rate, (L.bound(rate, full, full_cost, 0, 0)), started, cost)
    L.changed = true
    if not grouped then return end
    local group = L.group(name or '')
    group.full = full_without(group.limits.rate, (L.bound_of(group)), started, cost)
    group.changed = true
  end

  function L.save()
    if L.changed then
      redis.call('HSET', K.limits, 'full', text(full), 'fullCost', full_cost, 'pausedUntil', text(paused_until),
        'pauseLength', text(pause_length), 'virtual', cmsgpack.pack(virtual))
    end
    if grouped then L.save_groups() end
  end

  -- The queue is a grouped one from here on.
  function L.with_groups()
    grouped = true
    groups_of(L, group_running, group_rate)
  end

  if grouped then L.with_groups() end
  return L
end
