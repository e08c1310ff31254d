/** A process with the library of one checkout, `member.ts CHECKOUT URL COUNT`. For each message, a kind of work, it performs a round of it. */
import { setImmediate as turn } from 'node:timers/promises'
import { libraryOf } from '../checkout.ts'
import { ready } from '../role.ts'
import { fill, PERFORM, WORKS, type Work } from './work.ts'

const [checkout = '', url = '', size = ''] = process.argv.slice(2)
const count = Number(size)
const { Millpond } = await libraryOf(checkout)
const pond = await Millpond.open(url)
let rounds = 0
let left: { jobs: number; perform: () => Promise<void> } | undefined

ready(async (message) => {
  const [step, name] = String(message).split(' ')
  const work = WORKS.find((each) => each === name)
  if (work === undefined) throw new Error(`unknown work: ${message}`)
  if (step === 'prepare') left = await prepared(work)
  else await left?.perform()
  return { jobs: left?.jobs }
})

/** A new queue, known to the store. @returns the round */
async function prepared(work: Work): Promise<{ jobs: number; perform: () => Promise<void> }> {
  // A memory queue is bounded unless it is told otherwise.
  const queue = pond.queue<number>(`${work}-${rounds++}`, { capacity: null })
  const jobs = work === 'one' ? Math.ceil(count / 20) : count
  if (work === 'drain') await fill(queue, jobs)
  else await queue.push(-1)
  await turn()
  globalThis.gc?.()
  return { jobs, perform: () => PERFORM[work](queue, jobs) }
}
