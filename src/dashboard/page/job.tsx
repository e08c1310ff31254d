/** One job: where it is, why, what happened to it, and what may be done with it. */
import { useState } from 'preact/hooks'
import type { JobPage, Shown } from '../views.ts'
import { ago, clock, duration } from './format.ts'
import { JobEdit } from './job-edit.tsx'
import { serverNow, useAsk } from './live.ts'
import { act, copy } from './notices.tsx'
import { Ago, Asking, Badge, Empty, Fault, State, Sure } from './parts.tsx'
import { Relatives } from './relatives.tsx'
import { queueLink } from './route.ts'
import { Timeline } from './timeline.tsx'
import { Payload, Value } from './value.tsx'

export const Job = ({ store, id }: { store: string; id: string }) => {
  const { answer: job, fault, status, again } = useAsk<JobPage>('job', { store, id })
  const [isEdited, setEdited] = useState(false)
  if (status === 404)
    return <Empty>There is no job {id}: it was removed, its time to be kept is over, or you may not see it.</Empty>
  if (job === undefined) return fault === undefined ? <Asking /> : <Fault text={fault} />
  const { state, may } = job
  const isWaiting = state === 'waiting' || state === 'scheduled' || state === 'blocked'
  const isLive = isWaiting || state === 'running'
  const send = async (name: string, done: string, more: object = {}) => {
    await act(name, { store, id, ...more }, done)
    again()
  }
  return (
    <>
      <p class="crumbs">
        <a href={queueLink(store, job.queue)}>{job.queue}</a>
      </p>
      <header class="title">
        <h1 class="mono">{id}</h1>
        <button type="button" class="quiet" aria-label="Copy the id" onClick={() => copy(id)}>
          Copy
        </button>
        <State state={state} />
        <span class="grow" />
        {may.operate && (
          <span class="actions">
            {(state === 'dead' || state === 'cancelled') && (
              <button type="button" class="solid" onClick={() => send('requeue', 'It waits again')}>
                Retry
              </button>
            )}
            {state === 'scheduled' && (
              <button
                type="button"
                class="solid"
                onClick={() => send('update', 'It waits from now on', { change: { delay: 0 } })}
              >
                Run now
              </button>
            )}
            {isWaiting && (
              <button type="button" onClick={() => setEdited(true)}>
                Edit …
              </button>
            )}
            {isLive && <Sure label="Cancel" sure="Cancel it" act={() => send('cancel', 'It is cancelled')} />}
            <Sure label="Remove" sure="Remove it" act={() => send('remove', 'It is gone')} />
          </span>
        )}
      </header>
      {isLive && job.why !== null && (
        <p class="why">
          <b>Why? </b>
          {job.why}
        </p>
      )}
      <Timeline job={job} />
      <Relatives store={store} job={job} />
      <div class="columns">
        <div>
          {job.error !== null && (
            <section class="card">
              <header>
                <h2>Last error</h2>
                <Badge kind="alarm">{job.error.code}</Badge>
                <span class="mute">{job.error.name}</span>
              </header>
              {job.error.message === null ? (
                <p class="locked">You may not see messages of errors of this queue.</p>
              ) : (
                // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
                // biome-ignore lint/a11y/useSemanticElements: a section has no monospaced text of its own
                <pre class="stack" role="region" tabIndex={0} aria-label="Last error">
                  {job.error.stack ?? job.error.message}
                </pre>
              )}
            </section>
          )}
          <Payload title="Data" view={job.data} />
          <Payload title="Progress" view={job.progress} />
          <Payload title="Result" view={job.result} />
          <Log job={job} />
        </div>
        <Facts job={job} store={store} />
      </div>
      {isEdited && (
        <JobEdit
          store={store}
          job={job}
          close={() => {
            setEdited(false)
            again()
          }}
        />
      )}
    </>
  )
}

const Facts = ({ job, store }: { job: JobPage; store: string }) => {
  const facts: [string, preact.ComponentChildren][] = [
    ['Attempt', `${job.attempt} of ${job.attempts}`],
    ['Priority', job.priority],
    ['Pushed', <Ago key="pushed" at={job.pushedAt} says=" ago" />],
    ['Due', <Ago key="due" at={job.dueAt} says=" ago" />],
    [
      'Group',
      job.group === null ? null : (
        <a href={queueLink(store, job.queue, 'jobs', `group:${JSON.stringify(job.group)}`)}>{job.group}</a>
      ),
    ],
    ['Key', job.key],
    ['Worker', job.worker],
    ['Time limit', job.timeout === null ? null : duration(job.timeout)],
    ['Cost', job.cost === 1 ? null : job.cost],
    ['Trace', job.trace === null ? null : <span class="mono">{job.trace}</span>],
  ]
  return (
    <dl class="card facts">
      {facts
        .filter(([, value]) => value !== null)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  )
}

/** On the line, as most are short. */
const Fields = ({ fields }: { fields: Shown | null }) => {
  if (fields === null) return null
  if (typeof fields !== 'object' || fields[0] !== 'o') return <Value value={fields} depth={9} />
  return (
    <>
      {fields[1].map(([name, value]) => (
        <span key={name} class="field">
          <span class="name">{name}</span>=<Value value={value} depth={9} />{' '}
        </span>
      ))}
    </>
  )
}

const Log = ({ job: { log } }: { job: JobPage }) => {
  if (log === null || log.length === 0) return null
  return (
    <section class="card">
      <header>
        <h2>Log</h2>
        <span class="mute">the last {log.length} lines</span>
      </header>
      <ol class="log">
        {log.map((line, index) => (
          <li key={index}>
            <span class="mute" title={line.at === null ? '' : `${clock(line.at)}, ${ago(line.at, serverNow())}`}>
              {line.at === null ? '–' : clock(line.at).slice(11)}
              {line.attempt !== null && ` #${line.attempt}`}
            </span>
            <span>
              {line.message} <Fields fields={line.fields} /> {line.cut && <Badge kind="note">cut</Badge>}
            </span>
          </li>
        ))}
      </ol>
    </section>
  )
}
