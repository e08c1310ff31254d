/** The replica race of the write-up, with and without the option `replica`. */
import { atMost } from '../../bars.ts'
import { attempt, type Run } from '../../chapter.ts'
import type { Part, Row } from '../../report/model.ts'
import { Pair, type Race } from '../race.ts'

const JOBS = { smoke: 50, usual: 1000, full: 1000 }
/** Besides none at all: what replication takes by itself on one machine is under a millisecond. */
const LAG = 50

export async function replicaRace(run: Run): Promise<Part> {
  const jobs = run.pick(JOBS)
  const rows: Row[] = []
  const pair = await Pair.start()
  try {
    for (const lag of [0, LAG]) {
      for (const aware of [false, true]) {
        const title = aware ? 'Millpond with the option replica' : 'the handler reads the replica'
        const race = await attempt(run, `${title}, ${lag} ms behind`, () => pair.race(jobs, lag, aware))
        if (race !== undefined) rows.push(rowFor(title, lag, aware, race))
      }
    }
  } finally {
    await pair.stop()
  }
  return {
    id: 'race',
    title: 'The record that is not yet on the replica',
    about: `A record and the job about it are committed together on the primary, ${jobs.toLocaleString('en')} times. The handler looks the record up on a streaming replica, as it is and ${LAG} ms behind.`,
    columns: [
      { key: 'lag', label: 'replica behind', unit: 'ms' },
      { key: 'jobs', label: 'jobs', unit: 'count' },
      { key: 'missed', label: 'records not found', unit: 'count', better: 'less' },
      { key: 'share', label: 'of all', unit: 'share', better: 'less' },
      { key: 'wait', label: 'read after commit, mean', unit: 'ms', better: 'less' },
    ],
    rows,
    charts: [],
    notes: ['With the option, a handler starts when the replica shows everything that was committed with its job.'],
  }
}

function rowFor(title: string, lag: number, aware: boolean, { jobs, missed, wait }: Race): Row {
  return {
    variant: `${aware ? 'replica' : 'plain'}-${lag}`,
    title,
    kind: aware ? 'ours' : 'plain',
    figures: { lag, jobs, missed, share: missed / jobs, wait },
    bars: aware ? [atMost(missed, 0, ' not found')] : [],
  }
}
