/**
 * `npm run rabbitmq` in lab/: what Millpond costs on RabbitMQ, beside a program that is written by hand with amqplib, at the same
 * durability: a quorum queue, persistent messages, confirms, acknowledgements. Both push jobs with 50 in flight, then work them off.
 */
import { type Channel, type ConfirmChannel, connect } from 'amqplib'
import { Millpond } from '../../src/index.ts'
import { startRabbitmq } from '../../test/servers/rabbitmq.ts'

const JOBS = Number(process.argv[2] ?? 10_000)
const ROUNDS = Number(process.argv[3] ?? 5)
const IN_FLIGHT = 50
const DATA = { to: 'ada@example.org', subject: 'hello' }

interface Contender {
  push(): Promise<unknown>
  /** Resolves when all jobs are worked off. */
  drain(): Promise<void>
  close(): Promise<void>
}

async function byHand(url: string, name: string): Promise<Contender> {
  const [out, back] = await Promise.all([connect(url), connect(url)])
  const channel: ConfirmChannel = await out.createConfirmChannel()
  const consumer: Channel = await back.createChannel()
  await channel.assertQueue(name, { arguments: { 'x-queue-type': 'quorum' } })
  return {
    push: () =>
      new Promise((resolve, reject) => {
        const body = Buffer.from(JSON.stringify(DATA))
        channel.sendToQueue(name, body, { persistent: true }, (error) => (error === null ? resolve(0) : reject(error)))
      }),
    async drain() {
      await consumer.prefetch(IN_FLIGHT)
      let left = JOBS
      await new Promise<void>((resolve) => {
        void consumer.consume(name, async (message) => {
          if (message === null) return
          await handle(JSON.parse(message.content.toString()))
          consumer.ack(message)
          if (--left === 0) resolve()
        })
      })
      // Until the broker has read the last acknowledgement.
      await consumer.prefetch(IN_FLIGHT)
    },
    async close() {
      await channel.deleteQueue(name)
      await Promise.all([out.close(), back.close()])
    },
  }
}

async function byMillpond(url: string, name: string): Promise<Contender> {
  const pond = await Millpond.open(`${url}?prefix=${name}`)
  const queue = pond.queue<typeof DATA>('jobs')
  return {
    push: () => queue.push(DATA),
    async drain() {
      let left = JOBS
      await new Promise<void>((resolve) => {
        queue.work(
          async ({ data }) => {
            await handle(data)
            if (--left === 0) resolve()
          },
          { concurrency: IN_FLIGHT },
        )
      })
      // With it go the last acknowledgements.
      await pond.close()
    },
    async close() {
      await pond.close()
    },
  }
}

async function handle(data: typeof DATA): Promise<void> {
  if (data.to !== DATA.to) throw new Error('not what was pushed')
}

/** Jobs a second: pushing, working off, and both one after the other. */
async function measured({ push, drain, close }: Contender): Promise<[number, number, number]> {
  await push()
  let left = JOBS - 1
  const began = performance.now()
  const pusher = async (): Promise<void> => {
    while (left-- > 0) await push()
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, pusher))
  const pushed = performance.now()
  await drain()
  const drained = performance.now()
  await close()
  const rate = (ms: number): number => Math.round((JOBS / ms) * 1000)
  return [rate(pushed - began), rate(drained - pushed), rate(drained - began)]
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

const server = await startRabbitmq()
try {
  process.stdout.write(`${JOBS} jobs, ${IN_FLIGHT} in flight; jobs a second: push, drain, both\n`)
  const ratios: [number[], number[], number[]] = [[], [], []]
  for (let round = 0; round < ROUNDS; round++) {
    const plain = await measured(await byHand(server.url, `hand-${round}`))
    const ours = await measured(await byMillpond(server.url, `ours-${round}`))
    for (const [index, list] of ratios.entries()) list.push((ours[index] ?? 0) / (plain[index] ?? 1))
    process.stdout.write(`by hand ${plain.join(' ')}   millpond ${ours.join(' ')}\n`)
  }
  const [push, drain, both] = ratios.map((list) => median(list).toFixed(2))
  process.stdout.write(
    `millpond ÷ by hand, medians of pairs: push ${push}, drain ${drain}, both ${both} (goal: 0.80)\n`,
  )
} finally {
  await server.stop()
}
