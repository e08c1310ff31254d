/** What each variant loses when its processes are killed in the middle. */
import { atMost } from '../../bars.ts'
import { attempts, type Run } from '../../chapter.ts'
import type { Part, Row } from '../../report/model.ts'
import { type Killed, killed } from '../kill.ts'
import type { Places } from '../service.ts'
import { NAMES, type VariantName, variant } from '../variants.ts'
import { kindOf } from './rates.ts'

const KILLS = { smoke: 1, usual: 3, full: 10 }

export async function kills(run: Run, places: () => Promise<Places>): Promise<Part> {
  const times = run.pick(KILLS)
  const names = NAMES.filter((name) => !variant(name).keepsNothing)
  const outcomes = await attempts(
    run,
    names,
    (name) => `${variant(name).title}, kill -9 in the middle`,
    async (name) => killed(name, times, await places()),
  )
  const rows = [...outcomes].filter(([, runs]) => runs.length > 0).map(([name, runs]) => rowFor(name, runs))
  return {
    id: 'kills',
    title: 'kill -9 of server and consumer in the middle',
    about: `Clients note each name that was answered with 202 while server and consumer get a SIGKILL at the same moment, ${times === 1 ? 'once' : `${times} times`}, and are started again. A name that never comes to the table is lost.`,
    columns: [
      { key: 'kills', label: 'kills', unit: 'count' },
      { key: 'accepted', label: 'accepted', unit: 'count' },
      { key: 'lost', label: 'lost', unit: 'count', better: 'less' },
      { key: 'twice', label: 'written twice', unit: 'count', better: 'less' },
      { key: 'failed', label: 'failed meanwhile', unit: 'count' },
    ],
    rows,
    charts: [],
    notes: [
      'At least once is the promise of Millpond: a batch whose insert was committed just before the kill is inserted again. A handler that writes by key, or with ctx.tx, writes once.',
      'The lease is 2 s here, 30 s unless set: so long a killed worker’s jobs wait before another one takes them.',
      'A Redis list loses the message that its consumer had popped at the moment of the kill: at most one for each kill with this consumer, a whole batch with one that pops batches.',
    ],
  }
}

function rowFor(name: VariantName, runs: readonly Killed[]): Row {
  const sum = (figure: keyof Killed) => runs.reduce((all, each) => all + each[figure], 0)
  const lost = sum('lost')
  return {
    variant: name,
    title: variant(name).title,
    kind: kindOf(name),
    figures: { kills: sum('kills'), accepted: sum('accepted'), lost, twice: sum('twice'), failed: sum('failed') },
    bars: kindOf(name) === 'ours' ? [atMost(lost, 0, ' lost')] : [],
  }
}
