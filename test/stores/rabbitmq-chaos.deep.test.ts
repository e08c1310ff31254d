/**
 * Jobs of our own and messages of another program, under kills of processes and of the broker, cut connections and silences: what was
 * acknowledged is handled. What ran again is reported, by the harm that came last: where a claim was lost, and where a broker that was killed
 * had not written an acknowledgement.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { connect } from 'amqplib'
import { started } from '../servers/fixtures.ts'
import { startProxy } from '../servers/proxy.ts'
import { type RabbitmqServer, startRabbitmq } from '../servers/rabbitmq.ts'
import { missingReason } from '../servers/shared.ts'
import { after } from '../support/cleaning.ts'
import { depth } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { freshPrefix } from './rabbitmq-fixture.ts'

const CHILD = fileURLToPath(new URL('./rabbitmq-child.ts', import.meta.url))
const WORKERS = 3
const PRODUCERS = 2
const FOREIGN = 100_000_000
const OWN = depth(5000, 20_000)
const OTHERS = depth(2000, 8000)
const ROUNDS = depth(1, 3)

/** Processes of one role, each replaced when it was killed, and the numbers that all of them told. */
class Crew {
  readonly runs = new Map<number, number>()
  /** How many ran again, by the harm that came last. */
  readonly again = new Map<string, number>()
  harm = 'none'
  readonly #role: string
  readonly #url: string
  #processes: ChildProcess[] = []
  #next = 0

  constructor(t: TestContext, role: string, url: string, size: number) {
    this.#role = role
    this.#url = url
    after(t, () => this.stop())
    for (let at = 0; at < size; at++) this.#start()
  }

  killOne(): void {
    this.#processes.shift()?.kill('SIGKILL')
    this.#start()
  }

  stop(): void {
    for (const each of this.#processes.splice(0)) each.kill('SIGKILL')
  }

  #start(): void {
    const first = `${this.#next++ * 1_000_000}`
    const child = spawn(process.execPath, [CHILD, this.#role, this.#url, first], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    this.#processes.push(child)
    let rest = ''
    child.stdout?.on('data', (chunk) => {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) this.#ran(Number(line))
    })
  }

  #ran(number: number): void {
    const before = this.runs.get(number) ?? 0
    this.runs.set(number, before + 1)
    if (before > 0) this.again.set(this.harm, (this.again.get(this.harm) ?? 0) + 1)
  }
}

/** Publishes to the queue of RabbitMQ that has the name of ours, with confirms. @returns the numbers that were confirmed, as they grow */
function publishes(t: TestContext, broker: RabbitmqServer): Set<number> {
  const confirmed = new Set<number>()
  let isOver = false
  after(t, () => {
    isOver = true
  })
  let number = FOREIGN
  const publish = async (): Promise<void> => {
    const connection = await connect(broker.url)
    connection.on('error', () => undefined)
    const channel = await connection.createConfirmChannel()
    channel.on('error', () => undefined)
    await channel.assertQueue('q', { durable: true })
    while (!isOver && confirmed.size < OTHERS) {
      const numbers = Array.from({ length: 10 }, () => number++)
      for (const each of numbers) {
        const body = Buffer.from(JSON.stringify({ number: each }))
        channel.sendToQueue('q', body, { persistent: true, contentType: 'application/json', messageId: 'the same' })
      }
      await channel.waitForConfirms()
      for (const each of numbers) confirmed.add(each)
      await sleep(10)
    }
    await connection.close()
  }
  void (async () => {
    while (!isOver && confirmed.size < OTHERS) await publish().catch(() => sleep(200))
  })()
  return confirmed
}

test('nothing that was acknowledged is lost', { skip: missingReason('rabbitmq'), timeout: 900_000 }, async (t) => {
  const broker = await started(t, () => startRabbitmq())
  if (broker === undefined) return
  const proxy = await startProxy(broker.port)
  after(t, () => proxy.stop())
  const query = `prefix=${freshPrefix()}&timeout=2000&heartbeat=3&foreign=1`
  const url = `amqp://127.0.0.1:${proxy.port}?${query}`
  const foreign = publishes(t, broker)
  await until(() => foreign.size > 0, 'the foreign queue is there')
  const producers = new Crew(t, 'produce', url, PRODUCERS)
  const workers = new Crew(t, 'work', url, WORKERS)
  const flow = async (): Promise<void> => {
    const before = workers.runs.size
    await until(() => workers.runs.size >= before + 200, 'jobs flow')
  }
  await flow()
  const harms: Record<string, () => Promise<void> | void> = {
    'a worker is killed': () => workers.killOne(),
    'a producer is killed': () => producers.killOne(),
    'connections are cut': () => proxy.cut(),
    async 'a silence'() {
      await proxy.blackhole()
      await sleep(2500)
      await proxy.allow()
    },
    'answers are muted, then connections cut': async () => {
      proxy.mute()
      await sleep(1000)
      proxy.cut()
      await proxy.allow()
    },
    async 'the broker is restarted'() {
      await broker.restart()
    },
    async 'the broker is killed'() {
      // RabbitMQ writes the names of new queues after some seconds: docs/rabbitmq.md.
      const tables = await broker.call('dets', 'all')
      for (const [name] of tables.matchAll(/\w+/g)) await broker.call('dets', 'sync', name)
      await broker.kill('SIGKILL')
      await broker.restart()
    },
  }
  const counts = new Map<string, number>()
  const names = Object.keys(harms)
  for (let at = 0; producers.runs.size < OWN || foreign.size < OTHERS || at < ROUNDS * names.length; at++) {
    const name = names[at % names.length] ?? ''
    workers.harm = name
    await harms[name]?.()
    counts.set(name, (counts.get(name) ?? 0) + 1)
    await flow()
  }
  producers.stop()
  const pushed = [...producers.runs.keys(), ...foreign]
  const missing = () => pushed.filter((number) => !workers.runs.has(number))
  const isOver = async (): Promise<boolean> => {
    const { size } = workers.runs
    const look = () => missing().length === 0 || workers.runs.size >= size + 200
    await until(look, 'jobs flow').catch(() => undefined)
    return missing().length === 0 || workers.runs.size === size
  }
  while (!(await isOver()));
  t.diagnostic(`${producers.runs.size} own jobs, ${foreign.size} foreign ones; harms: ${JSON.stringify([...counts])}`)
  t.diagnostic(`lost ${missing().length}; ran again ${JSON.stringify([...workers.again])}`)
  assert.equal(missing().length, 0)
})
