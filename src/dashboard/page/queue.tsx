/** One queue: its jobs, lines, groups and settings. */
import { lanesText } from '../../values/figures/worker-text.ts'
import type { Attention, QueuePage } from '../views.ts'
import { Charts } from './charts.tsx'
import { count, duration, rate } from './format.ts'
import { Groups } from './groups.tsx'
import { Jobs } from './jobs.tsx'
import { queueOf, storeOf, useAsk, useLive } from './live.ts'
import { act } from './notices.tsx'
import { Badge, Empty, Fault, Num, Stat } from './parts.tsx'
import { Priorities } from './priorities.tsx'
import { queueLink } from './route.ts'
import { Settings } from './settings.tsx'

const TABS = ['jobs', 'charts', 'groups', 'settings'] as const

/** What a queue's own page tells of why nothing goes on. */
const HELD: readonly Attention['kind'][] = ['noWorker', 'silent', 'slots', 'limit', 'groups']

interface Props {
  store: string
  queue: string
  tab: string
  search: string
}

export const Queue = ({ store, queue: name, tab, search }: Props) => {
  const live = useLive()
  const view = queueOf(live, store, name)
  const { answer, fault, status, again } = useAsk<QueuePage>('queue', { store, queue: name })
  if (status === 404) return <Empty>There is no queue {name}, or you may not see it.</Empty>
  const can = storeOf(live, store)?.capabilities
  // What the store cannot do is not offered.
  const tabs = TABS.filter((one) => {
    if (one === 'groups') return can?.groups !== false
    return one === 'settings' ? can?.settings !== false : true
  })
  const paused = answer?.report.paused ?? view?.paused ?? false
  // In this order: nobody there comes before what the limit holds back.
  const own = storeOf(live, store)?.attention.filter((one) => one.queue === name) ?? []
  const told = HELD.flatMap((kind) => own.filter((one) => one.kind === kind))
  const toggle = async () => {
    await act(paused ? 'resume' : 'pause', { store, queue: name }, paused ? `${name} goes on` : `${name} is paused`)
    again()
  }
  return (
    <>
      <header class="title">
        <h1>{name}</h1>
        {paused && <Badge kind="warn">paused</Badge>}
        {view?.overridden && <Badge kind="note">override</Badge>}
        <span class="grow" />
        {answer?.may.operate && can?.settings && (
          <button type="button" class={paused ? 'solid' : ''} onClick={toggle}>
            {paused ? 'Resume' : 'Pause'}
          </button>
        )}
      </header>
      <Fault text={fault} />
      {told.map(({ kind, level, text }) => (
        <p key={kind} class={level === 'alarm' ? 'fault' : 'mute'} role={level === 'alarm' ? 'alert' : undefined}>
          {text}
        </p>
      ))}
      {view && (
        <dl class="stats">
          <Stat label="Waiting">
            <Num value={view.counts.waiting} />
            {view.capacity !== null && (
              <span class="mute">
                {' / '}
                <Num value={view.capacity} />
              </span>
            )}
          </Stat>
          <Stat label="Running">
            <Num value={view.counts.running} />
            {answer?.report.limits?.running != null && (
              <span class="mute"> / {count(answer.report.limits.running)}</span>
            )}
          </Stat>
          <Stat label="In / s">{rate(view.arrivals)}</Stat>
          <Stat label="Done / s">{rate(view.completions)}</Stat>
          <Stat label="Wait p95">{duration(view.wait.p95)}</Stat>
          <Stat label="Run p95">{duration(answer?.report.run.p95 ?? null)}</Stat>
          <Stat label="Oldest">{duration(view.oldest)}</Stat>
          <Stat label="Slots busy">
            {count(view.busy)}
            <span class="mute"> / {count(view.slots)}</span>
            {view.lanes !== null && <span class="lanes-kept mute">lanes: {lanesText(view.lanes, view.slots)}</span>}
          </Stat>
          <Stat label="Slots needed">{view.needed === null ? '–' : `≈ ${count(view.needed)}`}</Stat>
        </dl>
      )}
      <nav class="tabs" aria-label="Parts of the queue">
        {tabs.map((one) => (
          <a key={one} href={queueLink(store, name, one)} aria-current={one === tab ? 'page' : undefined}>
            {one}
          </a>
        ))}
      </nav>
      {tab === 'charts' && (
        <>
          <Charts store={store} queue={name} />
          {answer && <Priorities report={answer.report} />}
        </>
      )}
      {tab === 'groups' && answer && <Groups store={store} queue={name} page={answer} changed={again} />}
      {tab === 'settings' && answer && <Settings store={store} queue={name} page={answer} changed={again} />}
      {tab === 'jobs' && can?.lists === false && <Empty>This store cannot list its jobs.</Empty>}
      {tab === 'jobs' && can?.lists && <Jobs store={store} queue={name} text={search} page={answer} />}
    </>
  )
}
