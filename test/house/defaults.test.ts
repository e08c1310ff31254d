/** Every default and bound stands once, in `contract/defaults.json`. What cannot read it holds the same values. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { DEFAULTS } from '../../src/values/settings/contract-defaults.ts'
import { contractDefaults, figureAt } from './defaults-module.ts'

const contract = new URL('../../contract/', import.meta.url)

/** All SQL or Lua of a store. */
function textsOf(store: string): string {
  const folder = new URL(`${store}/`, contract)
  const names = readdirSync(folder, { recursive: true }).map(String)
  const files = names.filter((name) => /\.(sql|lua)$/.test(name)).sort()
  return files.map((name) => readFileSync(new URL(name, folder), 'utf8')).join('\n')
}

/** Where a value stands in a store's texts: what comes before it, and the figure that it is. At least one place each. */
type Place = readonly [before: RegExp, figure: string]

const column = (name: string, type: string): RegExp => new RegExp(`^ +${name} +${type} +not null default `)

const columns = (integer: string, real: string): Place[] => [
  [column('keep_done', integer), 'queue.keepDone'],
  [column('keep_dead', integer), 'queue.keepDead'],
  [column('attempts', 'integer'), 'queue.attempts'],
  [column('lease', integer), 'queue.lease'],
  [column('backoff_base', integer), 'queue.backoff.base'],
  [column('backoff_factor', real), 'queue.backoff.factor'],
  [column('backoff_max', integer), 'queue.backoff.max'],
  [column('backoff_jitter', real), 'queue.backoff.jitter'],
  [column('weight', real), 'group.weight'],
  [column('cost', 'integer'), 'job.cost'],
]

const PLACES: Readonly<Record<string, readonly Place[]>> = {
  sqlite: [
    ...columns('integer', 'real'),
    [/:settings ->> 'keepDone', /, 'queue.keepDone'],
    [/:settings ->> 'keepDead', /, 'queue.keepDead'],
    [/:settings ->> 'attempts', /, 'queue.attempts'],
    [/:settings ->> 'lease', /, 'queue.lease'],
    [/:settings ->> '\$\.backoff\.base', /, 'queue.backoff.base'],
    [/:settings ->> '\$\.backoff\.factor', /, 'queue.backoff.factor'],
    [/:settings ->> '\$\.backoff\.max', /, 'queue.backoff.max'],
    [/:settings ->> '\$\.backoff\.jitter', /, 'queue.backoff.jitter'],
    [/max\(:now \+ /, 'store.keepGroup'],
    [/seen_at \+ (?=\d+ > :now and exists)/, 'schedule.declared'],
    [/\bseen \+ /, 'store.workerSilence'],
    [/length\((?:data|progress|result)\) <= /, 'bounds.body.most'],
  ],
  redis: [
    [/\bSOON = /, 'store.soon'],
    [/DEFAULT = \{ attempts = /, 'queue.attempts'],
    [/DEFAULT = .*\blease = /, 'queue.lease'],
    [/DEFAULT = .*\bkeepDone = /, 'queue.keepDone'],
    [/DEFAULT = .*\bkeepDead = /, 'queue.keepDead'],
    [/DEFAULT = .*\bbackoff = \{ /, 'queue.backoff.base'],
    [/DEFAULT = .*\bbackoff = \{ \d+, /, 'queue.backoff.factor'],
    [/DEFAULT = .*\bbackoff = \{ \d+, \d+, /, 'queue.backoff.max'],
    [/DEFAULT = .*\bbackoff = \{ \d+, \d+, \d+, /, 'queue.backoff.jitter'],
    [/\bFORGOTTEN(?:, FEW)? = /, 'store.workerSilence'],
    [/\bKEEP_UNUSED = /, 'store.keepGroup'],
    [/\bSET_BACK = /, 'store.setBack'],
    [/while count < /, 'store.ahead'],
  ],
  postgres: [
    ...columns('(?:bigint|integer)', 'double precision'),
    [/"keepDone": /, 'queue.keepDone'],
    [/"keepDead": /, 'queue.keepDead'],
    [/"attempts": /, 'queue.attempts'],
    [/"lease": /, 'queue.lease'],
    [/"base": /, 'queue.backoff.base'],
    [/"max": /, 'queue.backoff.max'],
    [/"jitter": /, 'queue.backoff.jitter'],
    [/coalesce\(claim\.lease, (?:q\.lease|holds), /, 'queue.lease'],
    [/v_delay < /, 'store.soon'],
    [/v_due < v_now \+ /, 'store.soon'],
    [/greatest\(p_now \+ /, 'store.keepGroup'],
    [/claimed_at - (?=\d)/, 'store.setBack'],
    [/list\."limit", /, 'store.look'],
    [/^language sql immutable as \$\$ select (?=\d+::bigint)/, 'store.workerSilence'],
    [/p_attempts not between 1 and /, 'bounds.attempts.most'],
    [/p_cost not between 1 and /, 'bounds.cost.most'],
    [/octet_length\(p_data\) > /, 'bounds.body.most'],
    [/v_rate\.per, 0\) not between 1 and /, 'bounds.ratePer.most'],
    [/v_rate\.count, 0\) not between 1 and /, 'bounds.rateCount.most'],
    [/v_rate\.burst not between 1 and /, 'bounds.rateBurst.most'],
    [/longest_silence\(\) returns bigint\n.* select /, 'store.workerSilence'],
    [/greatest\(list\."limit", /, 'store.look'],
    [/declared_for\(\) returns bigint .* select /, 'schedule.declared'],
    [/order by next_at, name limit /, 'schedule.due'],
    [/v_large +constant bigint +:= /, 'claim.bytes'],
  ],
}

test('the module of the defaults is made of contract/defaults.json', () => {
  assert.deepEqual(DEFAULTS, contractDefaults(), 'run `npm run docs`')
})

for (const [store, places] of Object.entries(PLACES)) {
  test(`the defaults in contract/${store} are those of contract/defaults.json`, () => {
    const text = textsOf(store)
    for (const [before, figure] of places) {
      const value = figureAt(figure)
      const found = [...text.matchAll(new RegExp(`(?:${before.source})(-?[\\d.]+)`, 'gm'))].map((match) =>
        Number(match.at(-1)),
      )
      assert.ok(found.length > 0, `contract/${store} has no ${before.source} any more`)
      for (const each of found) assert.equal(each, value, `${before.source} is not ${figure}`)
    }
  })
}

test('contract/worker.md tells the figures of contract/defaults.json', () => {
  const page = readFileSync(new URL('worker.md', contract), 'utf8')
  const rows = [...page.matchAll(/^\| `(\w+)` +\| ([\d.]+) +\|/gm)].map(([, name, value]) => [name, Number(value)])
  assert.deepEqual(Object.fromEntries(rows), contractDefaults().worker)
})
