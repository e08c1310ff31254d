/** One schedule: what became of its last times, its data, and a form that changes it. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { SchedulePage } from '../views.ts'
import { clock, duration } from './format.ts'
import { useAsk } from './live.ts'
import { Name } from './name.tsx'
import { act } from './notices.tsx'
import { Ago, Asking, Badge, Dialog, Empty, Fault, State } from './parts.tsx'
import { jobLink, queueLink } from './route.ts'
import { jsonOf, Payload } from './value.tsx'

const MISSED: Readonly<Record<string, string>> = { once: 'one job for them', skip: 'none', all: 'a job for each' }

export const Schedule = ({ store, name }: { store: string; name: string }) => {
  const { answer, fault, status, again } = useAsk<SchedulePage>('schedule', { store, name })
  const [isOpen, setOpen] = useState(false)
  if (status === 404) return <Empty>There is no schedule {name}, or you may not see it.</Empty>
  if (answer === undefined) return fault === undefined ? <Asking /> : <Fault text={fault} />
  const { words, when, tz, queue, paused, declared, missed, jitter, times, history, data, may, hasKey } = answer
  const kept = history.some(({ state }) => state !== null) ? history : []
  return (
    <>
      <p class="crumbs">
        <a href="#/schedules">Schedules</a>
      </p>
      <header class="title">
        <h1>{name}</h1>
        {paused && <Badge kind="warn">paused</Badge>}
        <span class="grow" />
        {may.operate && (
          <button type="button" onClick={() => setOpen(true)}>
            Edit …
          </button>
        )}
      </header>
      <Fault text={fault} />
      <div class="columns">
        <div>
          <section class="card">
            <header>
              <h2>Its last times</h2>
              <span class="mute">in your time zone</span>
            </header>
            {history.length === 0 && <p class="mute">It has had no time yet.</p>}
            {history.length > 0 && kept.length === 0 && (
              <p class="mute">None of its last {history.length} times has a job: none was pushed, or none is kept.</p>
            )}
            {kept.length > 0 && (
              <ol class="history">
                {kept.map(({ at, id, state }) => (
                  <li key={id}>
                    <span>{clock(at).slice(0, 19)}</span>
                    {state === null ? (
                      <span class="mute">no job, or no longer kept</span>
                    ) : (
                      <a data-row href={jobLink(store, id)}>
                        <State state={state} />
                      </a>
                    )}
                  </li>
                ))}
              </ol>
            )}
            {hasKey && (
              <p class="mute">Its jobs have a key: at some times a live job with the key stood for a new one.</p>
            )}
          </section>
          <Payload title="Data" view={data} />
        </div>
        <dl class="card facts">
          <Fact name="When">
            {words} <code>{when}</code>
          </Fact>
          <Fact name="Zone">{tz}</Fact>
          <Fact name="Queue">
            <a href={queueLink(store, queue)}>
              <Name text={queue} />
            </a>
          </Fact>
          <Fact name="Missed times">{MISSED[missed] ?? missed}</Fact>
          {jitter > 0 && <Fact name="Jitter">{duration(jitter)}</Fact>}
          <Fact name="Next">{paused || times[0] === undefined ? '–' : <Ago at={times[0]} />}</Fact>
          <Fact name="Declared">{declared ? 'in the last 90 s' : 'by no program now'}</Fact>
        </dl>
      </div>
      {isOpen && (
        <Edit
          store={store}
          page={answer}
          close={() => {
            setOpen(false)
            again()
          }}
        />
      )}
    </>
  )
}

const Fact = ({ name, children }: { name: string; children: ComponentChildren }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
)

const Edit = ({ store, page, close }: { store: string; page: SchedulePage; close: () => void }) => {
  const { name, declared } = page
  const known = page.data.state === 'shown' && !page.data.redacted ? jsonOf(page.data.value) : undefined
  const [when, setWhen] = useState(page.when)
  const [tz, setTz] = useState(page.tz)
  const [data, setData] = useState(known)
  const [bad, setBad] = useState<string | undefined>(undefined)
  const { answer, fault } = useAsk<{ words: string; times: number[] }>('previewSchedule', { store, when, tz })
  const save = async (event: Event) => {
    event.preventDefault()
    setBad(undefined)
    const change: Record<string, unknown> = { when, tz }
    if (data !== undefined && data !== known) {
      try {
        change.data = JSON.parse(data)
      } catch {
        setBad('The data are not JSON.')
        return
      }
    }
    if (await act('changeSchedule', { store, name, change }, `${name} is changed`, setBad)) close()
  }
  return (
    <Dialog title={`Edit ${name}`} close={close}>
      {declared && (
        <p class="why">
          A program declares this schedule, or somebody has just changed it. If a program does, its own line comes back
          within two minutes: change it in the code. Pausing lasts.
        </p>
      )}
      <form onSubmit={save}>
        <label>
          When
          <input class="mono" value={when} onInput={(event) => setWhen(event.currentTarget.value)} />
        </label>
        <label>
          Time zone
          <input value={tz} onInput={(event) => setTz(event.currentTarget.value)} />
        </label>
        {fault === undefined && answer !== undefined && (
          <p class="mute">
            {answer.words}. Next:{' '}
            {answer.times
              .slice(0, 3)
              .map((at) => clock(at).slice(0, 19))
              .join(', ')}
          </p>
        )}
        <Fault text={bad ?? fault} />
        {data !== undefined && (
          <label>
            Data, as JSON
            <textarea
              rows={6}
              class="mono"
              spellcheck={false}
              value={data}
              onInput={(event) => setData(event.currentTarget.value)}
            />
          </label>
        )}
        <footer>
          <button type="button" onClick={close}>
            Leave it
          </button>
          <button type="submit" class="solid" disabled={fault !== undefined}>
            Save
          </button>
        </footer>
      </form>
    </Dialog>
  )
}
