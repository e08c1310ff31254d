/** A client that follows its request by the id it was answered with. */
import { atMost } from '../../bars.ts'
import { attempts, type Run } from '../../chapter.ts'
import type { Part, Row } from '../../report/model.ts'
import { quantile } from '../../statistics.ts'
import { type Followed, followed } from '../follow.ts'
import type { Places } from '../service.ts'
import { NAMES, type VariantName, variant } from '../variants.ts'
import { kindOf } from './rates.ts'

const REQUESTS = { smoke: 20, usual: 200, full: 2000 }

export async function following(run: Run, places: (followed: boolean) => Promise<Places>): Promise<Part> {
  const requests = run.pick(REQUESTS)
  const ours = NAMES.filter((name) => variant(name).ours)
  const outcomes = await attempts(
    run,
    ours,
    (name) => `${variant(name).title}, following requests`,
    async (name) => followed(name, requests, await places(true)),
  )
  const rows = [...outcomes].filter(([, runs]) => runs.length > 0).map(([name, runs]) => rowFor(name, runs))
  const plain = (['inside', 'apart'] as const).map(
    (name): Row => ({
      variant: name,
      title: variant(name).title,
      kind: 'plain',
      figures: {},
      bars: [],
      skipped: 'it answers with an id, but nobody can tell what became of it',
    }),
  )
  return {
    id: 'following',
    title: 'Following a request by its id',
    about: `${requests.toLocaleString('en')} requests of 4 clients. Each posts a name, takes the id from the 202, and long-polls GET /users/:id until the job is done; its result is the id of the row, which is then looked up.`,
    columns: [
      { key: 'requests', label: 'requests', unit: 'count' },
      { key: 'acceptedP50', label: '202 after, p50', unit: 'ms', better: 'less' },
      { key: 'acceptedP95', label: 'p95', unit: 'ms', better: 'less' },
      { key: 'knownP50', label: 'row known after, p50', unit: 'ms', better: 'less' },
      { key: 'knownP95', label: 'p95 ', unit: 'ms', better: 'less' },
      { key: 'wrong', label: 'wrong row', unit: 'count' },
    ],
    rows: [...rows, ...plain],
    charts: [],
    notes: ['The worker waits up to 20 ms for a batch, which is most of what a lone client waits for.'],
  }
}

function rowFor(name: VariantName, runs: readonly Followed[]): Row {
  const accepted = runs.flatMap((each) => each.accepted)
  const known = runs.flatMap((each) => each.known)
  const wrong = runs.reduce((sum, each) => sum + each.wrong, 0)
  return {
    variant: name,
    title: variant(name).title,
    kind: kindOf(name),
    figures: {
      requests: known.length,
      acceptedP50: quantile(accepted, 0.5),
      acceptedP95: quantile(accepted, 0.95),
      knownP50: quantile(known, 0.5),
      knownP95: quantile(known, 0.95),
      wrong,
    },
    bars: [atMost(wrong, 0, ' wrong')],
  }
}
