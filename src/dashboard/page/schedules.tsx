/** Schedules: in words, with their next times, and what may be done with each. */
import type { ScheduleRow } from '../views.ts'
import { ask, messageOf } from './api.ts'
import { clock } from './format.ts'
import { useAsk, useLive } from './live.ts'
import { Name } from './name.tsx'
import { act, notify } from './notices.tsx'
import { Ago, Asking, Badge, Empty, Fault, Sure } from './parts.tsx'
import { go, jobLink, queueLink, scheduleLink } from './route.ts'

export const Schedules = () => {
  const { tick } = useLive()
  const stores = tick?.stores.filter(({ capabilities }) => capabilities.schedules) ?? []
  return (
    <>
      <h1>Schedules</h1>
      {stores.map(({ name }) => (
        <StoreSchedules key={name} store={name} title={stores.length > 1 ? name : undefined} />
      ))}
    </>
  )
}

const StoreSchedules = ({ store, title }: { store: string; title: string | undefined }) => {
  const { answer, fault, again } = useAsk<{ schedules: ScheduleRow[] }>('schedules', { store })
  return (
    <section>
      {title !== undefined && <h2>{title}</h2>}
      <Fault text={fault} />
      {answer === undefined && fault === undefined && <Asking />}
      {answer?.schedules.length === 0 && <Empty>There is no schedule.</Empty>}
      {answer !== undefined && answer.schedules.length > 0 && (
        <table class="schedules">
          <thead>
            <tr>
              <th scope="col">Schedule</th>
              <th scope="col">When</th>
              <th scope="col">Queue</th>
              <th scope="col">Next</th>
              <th scope="col" class="num">
                Last
              </th>
              <th scope="col">Change</th>
            </tr>
          </thead>
          <tbody>
            {answer.schedules.map((schedule) => (
              <Row key={schedule.name} store={store} schedule={schedule} changed={again} />
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}

const Row = ({ store, schedule, changed }: { store: string; schedule: ScheduleRow; changed: () => void }) => {
  const { name, words, when, queue, paused, declared, times, lastAt, may } = schedule
  const send = async (operation: string, done: string) => {
    await act(operation, { store, name }, done)
    changed()
  }
  const run = async () => {
    try {
      const { id } = await ask<{ id: string }>('runSchedule', { store, name })
      notify(`${name}: its job is pushed`)
      go(jobLink(store, id))
    } catch (error) {
      notify(messageOf(error), true)
    }
  }
  const [next, ...later] = times
  return (
    <tr>
      <th scope="row">
        <a href={scheduleLink(store, name)}>
          <Name text={name} />
        </a>{' '}
        {paused && <Badge kind="warn">paused</Badge>} {!declared && <Badge kind="note">no program declares it</Badge>}
      </th>
      <td data-label="When">
        {words}
        <small class="mute mono">{when}</small>
      </td>
      <td data-label="Queue">
        <a data-row href={queueLink(store, queue)}>
          <Name text={queue} />
        </a>
      </td>
      <td data-label="Next">
        {next !== undefined && !paused && (
          <>
            <Ago at={next} says=" ago" />
            <details>
              <summary class="mute">{clock(next).slice(0, 19)}</summary>
              {later.map((at) => (
                <div key={at} class="mute">
                  {clock(at).slice(0, 19)}
                </div>
              ))}
            </details>
          </>
        )}
      </td>
      <td class="num" data-label="Last">
        <Ago at={lastAt} says=" ago" />
      </td>
      <td data-label="Change">
        {may.operate && (
          <span class="actions">
            <button type="button" aria-label={`Run now: ${name}`} onClick={run}>
              Run now
            </button>
            {paused ? (
              <button
                type="button"
                aria-label={`Resume ${name}`}
                onClick={() => send('resumeSchedule', `${name} goes on`)}
              >
                Resume
              </button>
            ) : (
              <button
                type="button"
                aria-label={`Pause ${name}`}
                onClick={() => send('pauseSchedule', `${name} is paused`)}
              >
                Pause
              </button>
            )}
            <Sure label="Remove" sure="Remove it" act={() => send('removeSchedule', `${name} is gone`)} />
          </span>
        )}
      </td>
    </tr>
  )
}
