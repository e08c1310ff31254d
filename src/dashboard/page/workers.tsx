/** Who works: in every process and language, with what each runs. */
import { lanesText, silentFor } from '../../values/figures/worker-text.ts'
import type { WorkerRow } from '../views.ts'
import { count, duration } from './format.ts'
import { useAsk, useLive } from './live.ts'
import { Name } from './name.tsx'
import { Ago, Asking, Badge, Empty, Fault } from './parts.tsx'
import { jobLink, queueLink } from './route.ts'

export const Workers = () => {
  const { tick } = useLive()
  return (
    <>
      <h1>Workers</h1>
      {tick?.stores.map(({ name, capabilities }) => (
        <StoreWorkers
          key={name}
          store={name}
          title={tick.stores.length > 1 ? name : undefined}
          knows={capabilities.workers}
        />
      ))}
    </>
  )
}

const StoreWorkers = ({ store, title, knows }: { store: string; title: string | undefined; knows: boolean }) => {
  const { answer, fault } = useAsk<{ workers: WorkerRow[] }>('workers', knows ? { store } : undefined)
  if (!knows) return <Empty>This store does not know its workers.</Empty>
  return (
    <section>
      {title !== undefined && <h2>{title}</h2>}
      <Fault text={fault} />
      {answer === undefined && fault === undefined && <Asking />}
      {answer?.workers.length === 0 && <Empty>No worker was heard of in the last minute.</Empty>}
      {answer !== undefined && answer.workers.length > 0 && (
        <table class="workers">
          <thead>
            <tr>
              <th scope="col">Queue</th>
              <th scope="col">Machine</th>
              <th scope="col" class="num">
                Process
              </th>
              <th scope="col">Busy</th>
              <th scope="col">Runs</th>
              <th scope="col" class="num">
                Since
              </th>
              <th scope="col" class="num">
                Last heard
              </th>
            </tr>
          </thead>
          <tbody>
            {answer.workers.map((worker) => (
              <Row key={`${worker.id} ${worker.queue}`} store={store} worker={worker} />
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}

const Row = ({ store, worker }: { store: string; worker: WorkerRow }) => {
  const { id, queue, host, pid, slots, busy, lanes, since, silence, silent, jobs } = worker
  return (
    <tr>
      <th scope="row">
        <a data-row href={queueLink(store, queue)} title={id}>
          <Name text={queue} />
        </a>
      </th>
      <td class="long" data-label="Machine">
        {host}
      </td>
      <td class="num" data-label="Process">
        {pid}
      </td>
      <td class="slots" data-label="Busy">
        <meter min={0} max={Math.max(1, slots)} value={busy} aria-label={`${busy} of ${slots} slots are busy`} />{' '}
        {count(busy)}
        <span class="mute"> / {count(slots)}</span>
        {lanes !== null && <span class="lanes-kept mute">lanes: {lanesText(lanes, slots)}</span>}
      </td>
      <td data-label="Runs" class="mono">
        {jobs.slice(0, 4).map((job) => (
          <span key={job.id} class="run">
            <a href={jobLink(store, job.id)} title={job.id}>
              {job.id.slice(-12)}
            </a>{' '}
            <span class="mute">
              <Ago at={job.startedAt} />
            </span>
          </span>
        ))}
        {jobs.length > 4 && <span class="mute">and {count(jobs.length - 4)} more</span>}
      </td>
      <td class="num" data-label="Since">
        <Ago at={since} />
      </td>
      <td class="num" data-label="Last heard">
        {silent ? (
          <>
            <Badge kind="warn">{silentFor(silence)}</Badge>
            <span class="mute"> its jobs come back when their leases end</span>
          </>
        ) : (
          `${duration(silence)} ago`
        )}
      </td>
    </tr>
  )
}
