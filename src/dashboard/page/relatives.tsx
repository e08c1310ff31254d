/** A job among those that it waits for and those that wait for it: lists of links, with lines drawn between them. */
import { useState } from 'preact/hooks'
import type { JobPage, RelativesSide } from '../views.ts'
import { count } from './format.ts'
import { State } from './parts.tsx'
import { jobLink } from './route.ts'
import './style/relatives.css'

/** Pixels, as in the style: of a row, and between the lists. */
const ROW = 32
const GAP = 48
/** Rows of a side until all are asked for: the job's own data should not be far below. */
const FEW = 6

export const Relatives = ({ store, job }: { store: string; job: JobPage }) => {
  const [isWhole, setWhole] = useState(false)
  if (job.relatives === null) return null
  const { parents, children, more } = job.relatives
  const canOpen = Math.max(parents.shown.length, children.shown.length) > FEW + 1
  const [left, right] = [parents, children].map((side) => (isWhole || !canOpen ? side : short(side)))
  if (left === undefined || right === undefined) return null
  const rows = Math.max(1, rowsOf(left), rowsOf(right))
  return (
    <section class="card relatives">
      <header>
        <h2>Graph</h2>
        <span class="mute">
          waits for {count(parents.count)}, {count(children.count)} {children.count === 1 ? 'waits' : 'wait'} for it
          {more && ', and more'}
        </span>
        {canOpen && (
          <button type="button" class="quiet" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
            {isWhole ? 'Show fewer' : 'Show more'}
          </button>
        )}
      </header>
      <div class="lanes">
        <Side store={store} name="Parents" side={left} />
        {left.count > 0 && <Lines from={rowsOf(left)} to={1} rows={rows} />}
        <p class="self">
          <span class="mono">{job.id.slice(-12)}</span>
          <State state={job.state} />
        </p>
        {right.count > 0 && <Lines from={1} to={rowsOf(right)} rows={rows} />}
        <Side store={store} name="Children" side={right} />
      </div>
    </section>
  )
}

const short = ({ shown, count: all }: RelativesSide): RelativesSide => ({
  shown: shown.length > FEW + 1 ? shown.slice(0, FEW) : shown,
  count: all,
})
const isCut = ({ shown, count: all }: RelativesSide) => all > shown.length
const rowsOf = (side: RelativesSide) => side.shown.length + (isCut(side) ? 1 : 0)

const Side = ({ store, name, side }: { store: string; name: string; side: RelativesSide }) => (
  <ul aria-label={name}>
    {side.shown.map(({ id, queue, state }) => (
      <li key={id}>
        <a href={jobLink(store, id)} title={`${queue} ${id}`}>
          {queue} <span class="mono mute">{id.slice(-12)}</span>
        </a>
        <State state={state} />
      </li>
    ))}
    {isCut(side) && <li class="mute">and {count(side.count - side.shown.length)} more</li>}
  </ul>
)

/** From the middle of each row on the one side to that of each on the other; one of the sides is a single row. */
const Lines = ({ from, to, rows }: { from: number; to: number; rows: number }) => {
  const height = rows * ROW
  const middle = (row: number, of: number) => height / 2 + (row - (of - 1) / 2) * ROW
  const pairs = Array.from({ length: from * to }, (_, at) => [middle(Math.floor(at / to), from), middle(at % to, to)])
  return (
    <svg width={GAP} height={height} viewBox={`0 0 ${GAP} ${height}`} aria-hidden="true">
      {pairs.map(([start, end]) => (
        <path key={`${start}-${end}`} d={`M0 ${start}C${GAP / 2} ${start} ${GAP / 2} ${end} ${GAP} ${end}`} />
      ))}
    </svg>
  )
}
