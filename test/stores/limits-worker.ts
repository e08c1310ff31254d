/** A process that claims jobs one batch after the other and tells of each when it starts and ends. Arguments: the module of the store, its URL. */
import { setTimeout as pause } from 'node:timers/promises'
import type { OpenStore, Store } from '../../src/store.ts'

const [module = '', url = ''] = process.argv.slice(2)
const { open } = (await import(module)) as { open: OpenStore }
const store = await open(url, {})

async function work(claimer: Store, worker: string): Promise<void> {
  for (;;) {
    const { jobs } = await claimer.operations.claim({ queue: 'q', worker, limit: 5, lease: 1_000 })
    if (jobs.length === 0) await pause(2)
    await Promise.all(
      jobs.map(async ({ id, fence, group }) => {
        tell('start', id, fence, group ?? '')
        await pause(1 + (fence % 3))
        tell('end', id, fence, group ?? '')
        await claimer.operations.complete({ queue: 'q', items: [{ id, fence, result: null }] })
      }),
    )
  }
}

function tell(...words: (string | number)[]): void {
  process.stdout.write(`${[process.hrtime.bigint(), ...words].join(' ')}\n`)
}

await Promise.all(['a', 'b'].map((name) => work(store, `${process.pid}-${name}`)))
