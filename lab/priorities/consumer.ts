/** A consumer of both kinds of jobs: `consumer.ts VARIANT URL LONG`, where a long job takes LONG ms. */
import { setTimeout as sleep } from 'node:timers/promises'
import { machineTime } from '../clock.ts'
import { ready } from '../role.ts'
import type { Run, Told } from './messages.ts'
import { SHORT, SLOTS } from './settings.ts'
import { variant } from './variants.ts'

const [name = '', url = '', long = ''] = process.argv.slice(2)
const takes = { long: Number(long), urgent: SHORT }
const told: Told = { runs: [] }

const transport = await variant(name).transport()
await transport.consume(url, SLOTS, async (message) => {
  const run: Run = { ...message, started: machineTime() }
  told.runs.push(run)
  await sleep(takes[message.kind])
  run.ended = machineTime()
})
ready(() => told)
