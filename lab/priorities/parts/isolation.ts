/** The report of the write-up that ran out of memory, with and without isolation. */
import { atMost } from '../../bars.ts'
import { attempt, type Run } from '../../chapter.ts'
import type { Part, Row } from '../../report/model.ts'
import { type Outcome, run as runOnce } from '../isolation/run.ts'
import { MEMORY } from '../isolation/settings.ts'

const OTHERS = { smoke: 200, usual: 10_000, full: 10_000 }

export async function isolation(run: Run): Promise<Part> {
  const others = run.pick(OTHERS)
  const place = await run.stage.place('postgres')
  const rows: Row[] = []
  for (const isolated of [false, true]) {
    const title = isolated ? 'Millpond, isolated handler' : 'handler in the consumer'
    const outcome = await attempt(run, `${title}: a report outgrows its memory`, async () =>
      runOnce(others, await place.fresh(), isolated),
    )
    if (outcome !== undefined) rows.push(rowFor(title, isolated, outcome))
  }
  return {
    id: 'isolation',
    title: 'The report that outgrows its memory',
    about: `One report allocates without end, among ${others.toLocaleString('en')} others that do not. The process of its handler may take ${MEMORY} MB. A consumer that dies is started again, and a job has three attempts.`,
    columns: [
      { key: 'crashes', label: 'consumers that died', unit: 'count', better: 'less' },
      { key: 'others', label: 'other reports', unit: 'count' },
      { key: 'done', label: 'done', unit: 'count' },
      { key: 'twice', label: 'run twice', unit: 'count', better: 'less' },
      { key: 'reason', label: 'the one report', unit: 'text' },
      { key: 'seconds', label: 'took', unit: 's', better: 'less' },
    ],
    rows,
    charts: [],
    notes: ['Isolated: isolate: { memory: "192MB", cpu: "30s" }. Queue on PostgreSQL, two slots, a lease of 2 s.'],
  }
}

function rowFor(title: string, isolated: boolean, { others, done, twice, crashes, reason, seconds }: Outcome): Row {
  return {
    variant: isolated ? 'isolated' : 'plain',
    title,
    kind: isolated ? 'ours' : 'plain',
    figures: { crashes, others, done, twice, reason, seconds },
    bars: isolated
      ? [atMost(crashes, 0, ' died'), atMost(others - done, 0, ' missing'), atMost(twice, 0, ' twice')]
      : [],
  }
}
