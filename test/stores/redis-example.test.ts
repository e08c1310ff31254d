/** The example in contract/redis/README.md, "Limits and turns": its steps are run, and the keys are compared with its table. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { Redis } from 'ioredis'
import type { Store } from '../../src/store.ts'
import { idBytes, idText, recordIn, unpack } from '../../src/stores/redis/wire.ts'
import type { Hold } from '../../src/values/jobs/records.ts'
import { claim } from '../conformance/suite.ts'
import { EPOCH } from '../conformance/vectors.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { newJob } from '../support/jobs.ts'
import { keyOf, openRedis } from './redis-fixture.ts'

const PAGE = new URL('../../contract/redis/README.md', import.meta.url)

/** The rows of the page's table whose first column is `step`, cell by column. */
function exampleRows(): Record<string, string>[] {
  const lines = readFileSync(PAGE, 'utf8').split('\n')
  const from = lines.findIndex((line) => line.startsWith('| step '))
  const length = lines.slice(from).findIndex((line) => !line.startsWith('|'))
  const cellsOf = (line: string) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll('`', ''))
  const [head = '', , ...rows] = lines.slice(from, from + length)
  const columns = cellsOf(head)
  return rows.map((row) => Object.fromEntries(cellsOf(row).map((cell, i) => [columns[i] ?? '', cell])))
}

/** Does a step as the page words it, such as `claim 2` or `complete a1 c1`. */
class Steps {
  readonly #store: Store
  readonly #clock: { now: number }
  /** The jobs' names by their ids. */
  readonly names = new Map<string, string>()
  readonly #holds = new Map<string, Hold>()

  constructor(store: Store, clock: { now: number }) {
    this.#store = store
    this.#clock = clock
  }

  async run(step: string): Promise<void> {
    const [verb, ...words] = step.split(' ')
    if (verb === 'push') return this.#push(words)
    if (verb === 'claim') return this.#claim(Number(words[0]))
    if (verb === 'complete') return this.#complete(words)
    assert.equal(step, 'sweep after 10 s')
    this.#clock.now += 10_000
    await this.#store.operations.sweep({ limit: 100 })
  }

  async #push(names: readonly string[]): Promise<void> {
    const jobs = names.map((name) => newJob({ group: name.charAt(0).toUpperCase() }))
    for (const [i, { id }] of jobs.entries()) this.names.set(id, names[i] ?? '')
    await this.#store.operations.push({ jobs })
  }

  async #claim(limit: number): Promise<void> {
    for (const job of (await claim(this.#store, { limit })).jobs) this.#holds.set(this.names.get(job.id) ?? '', job)
  }

  async #complete(names: readonly string[]): Promise<void> {
    const items = names.map((name) => {
      const hold = this.#holds.get(name)
      assert.ok(hold, `${name} does not run`)
      return { id: hold.id, fence: hold.fence, result: null }
    })
    const outcomes = await this.#store.operations.complete({ queue: 'q', items })
    assert.deepEqual(
      outcomes,
      items.map(() => 'ok'),
    )
  }
}

/** What the keys of the queue hold, in the words of the table. */
async function keysNow(client: Redis, names: ReadonlyMap<string, string>, prefix: string) {
  const key = (name: string) => keyOf(prefix, 'q', name)
  const nameOf = (id: Buffer) => names.get(idText(id)) ?? '?'
  const sorted = (words: readonly (string | Buffer)[]) => words.map(String).sort()
  const records = await Promise.all([...names.keys()].map((id) => client.hgetBuffer(key('jobs'), idBytes(id))))
  const byPlace = new Map(records.map((record, i) => [record && recordIn(record).place, [...names.values()][i]]))
  // A line ends with the id and the cost.
  const lines = (await client.zrangeBuffer(key('lines'), '0', '-1')).map((entry) => nameOf(entry.subarray(-20, -4)))
  const tickets = (await client.zrangeBuffer(key('tickets'), '0', '-1')).map(
    (entry) => `${entry.readDoubleBE(1)} ${entry.toString('utf8', 15)} ${byPlace.get(entry.readUIntBE(9, 6))}`,
  )
  const groups = Object.entries(await client.hgetallBuffer(key('groups'))).map(([group, record]) => {
    const list = unpack(record)
    assert.ok(Array.isArray(list) && Array.isArray(list[2]))
    return `${group} ${list[2][4] ?? 0}`
  })
  const slots = Object.entries(await client.hgetall(key('slots'))).map(([group, count]) => `${group} ${count}`)
  return {
    lines: lines.join(' '),
    touched: sorted(await client.smembers(key('touched'))).join(', '),
    tickets: tickets.join(', '),
    blocked: sorted(await client.smembers(key('blocked'))).join(', '),
    slots: sorted(slots).join(', '),
    'virtual times': sorted(groups).join(', '),
    unused: sorted(await client.zrange(key('unused'), '0', '-1')).join(', '),
    running: sorted((await client.zrangeBuffer(key('running'), '0', '-1')).map(nameOf)).join(' '),
  }
}

describe('the example of groups on Redis', { skip: missingReason('redis') }, () => {
  test('its steps leave the keys that its table shows', async () => {
    const clock = { now: EPOCH }
    const url = serverUrl('redis') ?? ''
    const { store, prefix, dispose } = await openRedis(url, { clock: () => clock.now })
    const client = new Redis(url)
    try {
      await store.operations.configure({ queue: 'q', running: 2, groupRunning: 1 })
      const steps = new Steps(store, clock)
      const rows = exampleRows()
      const seen: Record<string, string>[] = []
      for (const { step = '' } of rows) {
        await steps.run(step)
        seen.push({ step, ...(await keysNow(client, steps.names, prefix)) })
      }
      assert.deepEqual(seen, rows)
    } finally {
      client.disconnect()
      await dispose()
    }
  })
})
