/** The jobs of a queue in one state, and changes of all that the search finds. */
import { useMemo, useRef, useState } from 'preact/hooks'
import type { JobState } from '../../values/jobs/records.ts'
import type { BulkAction, CountView, JobRow, JobsPage, QueuePage, Search } from '../views.ts'
import { Bulk } from './bulk.tsx'
import { count, duration } from './format.ts'
import { serverNow, storeOf, useAsk, useLive } from './live.ts'
import { Ago, Badge, Empty, Fault, Num, Pager } from './parts.tsx'
import { go, jobLink, queueLink, replace } from './route.ts'
import { parseSearch, STATES, withTerm } from './search.ts'
import { SearchBox, useTyped } from './search-box.tsx'

const ACTIONS: Readonly<Record<JobState, readonly BulkAction[]>> = {
  ...{
    blocked: ['cancel', 'remove'],
    waiting: ['cancel', 'remove'],
    scheduled: ['promote', 'cancel', 'remove'],
    running: ['cancel'],
  },
  ...{ dead: ['requeue', 'remove'], cancelled: ['requeue', 'remove'], done: ['remove'] },
}
export const ACTION_NAMES: Readonly<Record<BulkAction, string>> = {
  ...{ requeue: 'Retry all', cancel: 'Cancel all', remove: 'Remove all', promote: 'Run all now' },
}
/** What each needs of the store. */
const NEEDS = { requeue: 'requeue', cancel: 'cancel', remove: 'remove', promote: 'update' } as const
/** Milliseconds that `pushed:<1h` keeps its meaning: a search whose bounds moved at every tick would never be the same. */
const STEADY = 10_000
const ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i

interface Props {
  store: string
  queue: string
  text: string
  page: QueuePage | undefined
}

export const Jobs = ({ store, queue, text, page }: Props) => {
  const [pages, setPages] = useState<readonly string[]>([])
  const [bulk, setBulk] = useState<{ action: BulkAction; search: Search; text: string } | undefined>(undefined)
  const can = storeOf(useLive(), store)?.capabilities
  const counts = page?.report.counts
  const first = STATES.find((state) => (counts?.[state] ?? 0) > 0) ?? 'waiting'
  // The first state with jobs is looked for once, not at every change of the counts.
  const [usual, setUsual] = useState<JobState | undefined>(undefined)
  if (usual === undefined && counts !== undefined) setUsual(first)
  const steady = Math.floor(serverNow() / STEADY) * STEADY
  const parsed = parseSearch(text, usual ?? first, steady)
  const { search } = parsed
  // A page of another search begins nowhere in this one.
  const [paged, setPaged] = useState(text)
  if (paged !== text) {
    setPaged(text)
    setPages([])
  }
  const after = paged === text ? pages.at(-1) : undefined
  const isReady = search !== undefined && counts !== undefined
  const { answer, fault, again } = useAsk<JobsPage>(
    'jobs',
    isReady ? { store, queue, ...search, after, limit: 50 } : undefined,
    `${search?.state} ${text}`,
  )
  const counted = useAsk<CountView>(
    'count',
    isReady && can?.lists !== false ? { store, queue, ...search } : undefined,
    `${search?.state} ${text}`,
  )
  const state = search?.state ?? first
  const [typed, type, apply] = useTyped(text, (next, isTyping) => {
    if (ID.test(next)) go(jobLink(store, next.toLowerCase()))
    else (isTyping ? replace : go)(queueLink(store, queue, 'jobs', next))
  })
  const isApplied = typed.trim() === text && search !== undefined
  /** What the box says now, searched for or not, is what is changed. */
  const begin = (action: BulkAction) => {
    const said = typed.trim()
    if (said !== text) apply(typed)
    const own = said === text ? search : parseSearch(said, usual ?? first, steady).search
    if (own !== undefined && !ID.test(said) && ACTIONS[own.state].includes(action))
      setBulk({ action, search: own, text: said })
  }
  const offered = ACTIONS[state].filter((one) => can?.[NEEDS[one]] !== false)
  // Told once for each search, not at every change of the list.
  const told = useMemo(() => toldOf(answer), [`${search?.state} ${text}`, answer === undefined])
  // A search that is not finished, such as data.user, finds nothing: what may come next is that of the last jobs.
  const last = useRef(answer)
  if (answer !== undefined && answer.jobs.length > 0) last.current = answer
  const known = useMemo(() => knownValues(page, last.current), [page, last.current])
  return (
    <>
      <nav class="states" aria-label="States">
        {STATES.filter((one) => one !== 'blocked' || can?.graphs !== false).map((one) => (
          <a
            key={one}
            class={one}
            href={queueLink(store, queue, 'jobs', withTerm(text, 'state', one))}
            aria-current={one === state ? 'true' : undefined}
            onClick={() => setPages([])}
          >
            {one} <b>{counts ? <Num value={counts[one]} /> : '–'}</b>
          </a>
        ))}
      </nav>
      <div class="bar">
        <SearchBox typed={typed} type={type} known={known} fault={parsed.fault} search={apply} />
        {page?.may.operate &&
          offered.map((one) => (
            <button
              key={one}
              type="button"
              class={one === 'remove' ? 'danger' : ''}
              disabled={search === undefined && typed.trim() === text}
              onClick={() => begin(one)}
            >
              {ACTION_NAMES[one]} …
            </button>
          ))}
      </div>
      <Fault text={fault} />
      {(typed.trim() !== text || (answer === undefined && isReady && fault === undefined)) && (
        <Empty>Searching …</Empty>
      )}
      <p class="hidden" role="status">
        {isApplied && told}
      </p>
      {isApplied && counted.answer && <Counted view={counted.answer} />}
      {isApplied && <Found store={store} text={text} state={state} errorText={search.errorText} answer={answer} />}
      {isApplied && <Pager pages={pages} next={answer?.next ?? null} turn={setPages} />}
      {bulk !== undefined && (
        <Bulk
          store={store}
          queue={queue}
          {...bulk}
          close={() => {
            setBulk(undefined)
            again()
          }}
        />
      )}
    </>
  )
}

const toldOf = (answer: JobsPage | undefined): string =>
  answer === undefined
    ? ''
    : `${answer.jobs.length} jobs found${answer.next === null ? '' : ', and more on the next page'}`

const Counted = ({ view: { kind, count: found, looked, total } }: { view: CountView }) => {
  // That none is there is said where the table would be.
  if (kind === 'exact' && found === 0) return null
  if (kind === 'estimate' && found === 0) {
    const text = `None of the first ${count(looked)} jobs matches, of about ${count(total)}.`
    return <p class="found mute">{text}</p>
  }
  const number = { exact: count(found), more: `${count(found)}+`, estimate: `≈ ${count(found)}` }[kind]
  return (
    <p class="found mute">
      <b>{number}</b> {found === 1 ? 'job matches' : 'jobs match'}
      {kind === 'estimate' && `: an estimate, from the first ${count(looked)}`}
    </p>
  )
}

interface FoundProps {
  store: string
  text: string
  state: JobState
  errorText: string | undefined
  answer: JobsPage | undefined
}

const Found = ({ store, text, state, errorText, answer }: FoundProps) => {
  if (answer === undefined) return null
  const { jobs, isPart } = answer
  const isNone = jobs.length === 0 && !isPart
  return (
    <>
      {isPart && <p class="mute">Only a part of the jobs was looked at so far. “Next” goes on.</p>}
      {isNone && <Empty>{text === '' ? `No job is ${state}.` : `No job that is ${state} fits the search.`}</Empty>}
      {isNone && errorText !== undefined && <Empty>Text is matched as written: TIMEOUT is not timeout.</Empty>}
      {jobs.length > 0 && <Table store={store} jobs={jobs} state={state} />}
    </>
  )
}

function knownValues(page: QueuePage | undefined, answer: JobsPage | undefined): Record<string, string[]> {
  const unique = (all: readonly (string | null | undefined)[]) => [
    ...new Set(all.filter((one): one is string => !!one)),
  ]
  const jobs = answer?.jobs ?? []
  return {
    group: unique([...(page?.groups ?? []).map(({ group }) => group), ...jobs.map(({ group }) => group)]),
    key: unique(jobs.map(({ key }) => key)),
    places: answer?.places ?? [],
    code: unique([...jobs.map(({ error }) => error?.code), 'HandlerFailed', 'TimedOut', 'LeaseLost']),
  }
}

/** Which time a state is about. */
const TIMES: Readonly<Record<JobState, readonly [label: string, at: (job: JobRow) => number | null]>> = {
  blocked: ['Pushed', (job) => job.pushedAt],
  waiting: ['Due', (job) => job.dueAt],
  scheduled: ['Due', (job) => job.dueAt],
  running: ['Started', (job) => job.startedAt],
  done: ['Finished', (job) => job.finishedAt],
  dead: ['Finished', (job) => job.finishedAt],
  cancelled: ['Finished', (job) => job.finishedAt],
}

const Table = ({ store, jobs, state }: { store: string; jobs: readonly JobRow[]; state: JobState }) => {
  const [label, at] = TIMES[state]
  const hasErrors = jobs.some(({ error }) => error !== null)
  const hasRuns = state === 'done' || state === 'dead'
  return (
    <table class="jobs">
      <thead>
        <tr>
          <th scope="col">Job</th>
          <th scope="col">Group</th>
          <th scope="col">Key</th>
          <th scope="col" class="num">
            Attempt
          </th>
          <th scope="col" class="num">
            Priority
          </th>
          <th scope="col" class="num">
            Pushed
          </th>
          <th scope="col" class="num">
            {label}
          </th>
          {hasRuns && (
            <th scope="col" class="num">
              Ran
            </th>
          )}
          {hasErrors && <th scope="col">Last error</th>}
        </tr>
      </thead>
      <tbody>
        {jobs.map((job) => (
          <tr key={job.id}>
            <th scope="row" class="mono">
              <a data-row href={jobLink(store, job.id)} title={job.id}>
                <span class="mute">{job.id.slice(0, 8)}…</span>
                {job.id.slice(-12)}
              </a>
            </th>
            <td class="long" data-label="Group">
              {job.group}
            </td>
            <td class="long" data-label="Key">
              {job.key}
            </td>
            <td class="num" data-label="Attempt">
              {job.attempt}
              <span class="mute"> / {job.attempts}</span>
            </td>
            <td class="num" data-label="Priority">
              {job.priority}
            </td>
            <td class="num" data-label="Pushed">
              <Ago at={job.pushedAt} />
            </td>
            <td class="num" data-label={label}>
              <Ago at={at(job)} />
            </td>
            {hasRuns && (
              <td class="num" data-label="Ran">
                {job.startedAt !== null && job.finishedAt !== null ? duration(job.finishedAt - job.startedAt) : '–'}
              </td>
            )}
            {hasErrors && (
              <td class="error" data-label="Last error" title={job.error?.message ?? undefined}>
                {job.error && (
                  <>
                    <Badge kind="alarm">{job.error.code}</Badge> {job.error.message}
                  </>
                )}
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  )
}
