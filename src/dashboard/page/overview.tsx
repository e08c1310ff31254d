/** All queues at a glance, and what needs a person. */
import type { Attention, QueueView, StoreView } from '../views.ts'
import { count, duration, rate, short } from './format.ts'
import { pointsOf, useLive } from './live.ts'
import { Name } from './name.tsx'
import { Badge, Empty, Num, Sparkline, Stat } from './parts.tsx'
import { queueLink } from './route.ts'

const ICONS: Readonly<Record<Attention['kind'], string>> = {
  ...{
    alert: '!',
    noWorker: '⌀',
    silent: '⌀',
    full: '▣',
    dead: '✕',
    paused: '‖',
    limit: '≡',
    groups: '≡',
    slots: '↑',
    lost: '⚡',
    late: '◷',
  },
}
/** Notices that are shown. */
const MAX_NOTICES = 50
/** Where a notice leads. */
const TABS: Partial<Record<Attention['kind'], string>> = { groups: 'groups', limit: 'settings' }

export const Overview = () => {
  const { tick } = useLive()
  if (tick === undefined) return <Empty>Asking the store …</Empty>
  return (
    <>
      {tick.stores.map((store) => (
        <Store key={store.name} store={store} isOnly={tick.stores.length === 1} />
      ))}
    </>
  )
}

const Store = ({ store, isOnly }: { store: StoreView; isOnly: boolean }) => {
  const { queues, attention } = store
  return (
    <section aria-label={`Store ${store.name}`}>
      <h1 class={isOnly ? 'hidden' : ''}>{isOnly ? 'Overview' : `${store.name} · ${store.kind}`}</h1>
      {store.trouble !== undefined && (
        <p class="fault" role="alert">
          The store does not answer: {store.trouble}
        </p>
      )}
      {store.pace >= 10_000 && (
        <p class="mute">The store takes long to answer, so it is asked every {duration(store.pace)}.</p>
      )}
      {store.trouble === undefined && <Figures queues={queues} />}
      {attention.length > 0 && (
        <section class="attention" aria-label="Needs attention">
          <h2>Needs attention</h2>
          <ul>
            {attention.slice(0, MAX_NOTICES).map(({ queue, kind, level, text }) => (
              <li key={`${queue} ${kind} ${text}`} class={level}>
                <a data-row href={queueLink(store.name, queue, TABS[kind], kind === 'dead' ? 'state:dead' : '')}>
                  <i aria-hidden="true">{ICONS[kind]}</i>
                  <b>
                    <Name text={queue} />
                  </b>{' '}
                  <span>{text}</span>
                  <span class="hidden">{level}</span>
                </a>
              </li>
            ))}
          </ul>
          {attention.length > MAX_NOTICES && (
            <p class="mute">{count(attention.length - MAX_NOTICES)} more are not shown. Alarms come first.</p>
          )}
        </section>
      )}
      {queues.length === 0 ? (
        <Empty>{store.trouble === undefined ? 'There is no queue yet. The first push makes one.' : ''}</Empty>
      ) : (
        <Queues store={store.name} queues={queues} />
      )}
      {store.more && <p class="mute">There are more queues than the page shows.</p>}
    </section>
  )
}

const Figures = ({ queues }: { queues: readonly QueueView[] }) => {
  const sum = (of: (queue: QueueView) => number | null) => queues.reduce((all, queue) => all + (of(queue) ?? 0), 0)
  const dead = sum(({ counts }) => counts.dead)
  return (
    <dl class="stats">
      <Stat label="Waiting">
        <Num value={sum(({ counts }) => counts.waiting)} />
      </Stat>
      <Stat label="Scheduled">
        <Num value={sum(({ counts }) => counts.scheduled)} />
      </Stat>
      <Stat label="Running">
        <Num value={sum(({ counts }) => counts.running)} />
      </Stat>
      <Stat label="In / s">{rate(sum(({ arrivals }) => arrivals))}</Stat>
      <Stat label="Done / s">{rate(sum(({ completions }) => completions))}</Stat>
      <Stat label="Failed / s" tone={sum(({ failures }) => failures) > 0 ? 'warn' : ''}>
        {rate(sum(({ failures }) => failures))}
      </Stat>
      <Stat label="Dead" tone={dead > 0 ? 'alarm' : ''}>
        <Num value={dead} />
      </Stat>
      <Stat label="Slots busy">
        {count(sum(({ busy }) => busy))}
        <span class="mute"> / {count(sum(({ slots }) => slots))}</span>
      </Stat>
    </dl>
  )
}

const Queues = ({ store, queues }: { store: string; queues: readonly QueueView[] }) => (
  <table class="queues">
    <thead>
      <tr>
        <th scope="col">Queue</th>
        <th scope="col" class="num">
          Waiting
        </th>
        <th scope="col">Depth</th>
        <th scope="col" class="num">
          In / Done per s
        </th>
        <th scope="col">Flow</th>
        <th scope="col" class="num">
          Wait p50 · p95 · p99
        </th>
        <th scope="col" class="num">
          Oldest
        </th>
        <th scope="col" class="num">
          Failed / s
        </th>
        <th scope="col" class="num">
          Dead
        </th>
        <th scope="col">Workers</th>
        <th scope="col" class="num">
          Drained in
        </th>
      </tr>
    </thead>
    <tbody>
      {queues.map((queue) => (
        <QueueRow key={queue.name} store={store} queue={queue} />
      ))}
    </tbody>
  </table>
)

const QueueRow = ({ store, queue }: { store: string; queue: QueueView }) => {
  const { name, counts, wait, arrivals, completions, failures, slots, busy, needed, workers } = queue
  const points = pointsOf(store, name)
  const depth = points.map((point) => point[1])
  return (
    <tr>
      <th scope="row">
        <a data-row href={queueLink(store, name)}>
          <Name text={name} />
        </a>
        {queue.paused && <Badge kind="warn">paused</Badge>}
        {queue.overridden && <Badge kind="note">override</Badge>}
      </th>
      <td class="num big" data-label="Waiting">
        <Num value={counts.waiting} />
      </td>
      <td data-label="Depth">
        <Sparkline lines={[depth]} label={`Waiting jobs of ${name}, the last minutes`} />
      </td>
      <td class="num" data-label="In / Done per s">
        <span class="in">{rate(arrivals)}</span> <span class="mute">/</span>{' '}
        <span class="out">{rate(completions)}</span>
      </td>
      <td data-label="Flow">
        <Sparkline
          lines={[points.map((point) => point[2]), points.map((point) => point[3])]}
          label={`Arrivals and completions of ${name} a second, the last minutes`}
        />
      </td>
      <td class="num" data-label="Wait p50 · p95 · p99">
        {duration(wait.p50)} <span class="mute">·</span> {duration(wait.p95)} <span class="mute">·</span>{' '}
        {duration(wait.p99)}
      </td>
      <td class="num" data-label="Oldest">
        {duration(queue.oldest)}
      </td>
      <td class={`num ${failures ? 'warn' : ''}`} data-label="Failed / s">
        {rate(failures)}
      </td>
      <td class={`num ${counts.dead > 0 ? 'alarm' : ''}`} data-label="Dead">
        <Num value={counts.dead} />
      </td>
      <td class="slots" data-label="Workers">
        {workers > 0 && <Slots busy={busy} slots={slots} />}
        <span class="mute">
          {workers === 0 ? 'none' : `${short(busy)} / ${short(slots)}`}
          {needed !== null && needed > slots && <b class="warn"> needs ≈ {count(needed)}</b>}
        </span>
      </td>
      <td class="num" data-label="Drained in">
        {counts.waiting === 0 ? (
          <span class="mute">empty</span>
        ) : queue.drain === null ? (
          '–'
        ) : (
          `≈ ${duration(queue.drain)}`
        )}
      </td>
    </tr>
  )
}

const Slots = ({ busy, slots }: { busy: number; slots: number }) => (
  <meter min={0} max={Math.max(1, slots)} value={busy} aria-label={`${busy} of ${slots} slots are busy`} />
)
