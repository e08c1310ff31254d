/** The groups of a queue: what waits and runs, what holds each back, and limits of their own. */
import { useState } from 'preact/hooks'
import type { GroupRecord } from '../../values/settings/limits.ts'
import type { QueuePage } from '../views.ts'
import { messageOf } from './api.ts'
import { count, duration } from './format.ts'
import { useAsk } from './live.ts'
import { act } from './notices.tsx'
import { Badge, Dialog, Empty, Fault } from './parts.tsx'
import { queueLink } from './route.ts'
import { NONE, rateOf, rateText } from './setting-texts.ts'

interface Props {
  store: string
  queue: string
  page: QueuePage
  changed: () => void
}

const PAGE = 200
const nameOf = (group: string): string => (group === '' ? 'without a group' : group)

export const Groups = ({ store, queue, page, changed }: Props) => {
  const [afters, setAfters] = useState<readonly string[]>([])
  const [edited, setEdited] = useState<string | undefined>(undefined)
  const after = afters.at(-1)
  const further = useAsk<QueuePage>('queue', after === undefined ? undefined : { store, queue, after })
  const groups = (after === undefined ? page.groups : further.answer?.groups) ?? []
  const { limits } = page.report
  if (limits?.group == null && groups.length === 0) {
    return <Empty>Groups do not take turns here. Limits for groups, in the settings, make them do so.</Empty>
  }
  const isEmpty = groups.length === 0 && (after === undefined || further.answer !== undefined)
  const most = limits?.group?.running ?? null
  // As it is now, and not as it was when the dialog was opened.
  const changing = groups.find(({ group }) => group === edited)
  return (
    <>
      <p class="mute">
        Each group: {most === null ? 'no limit of running jobs' : `${count(most)} at once`},{' '}
        {limits?.group?.rate == null ? 'no limit of starts' : `${rateText(limits.group.rate)} starts`}.
      </p>
      <Fault text={further.fault} />
      {isEmpty ? (
        <Empty>No group has jobs, or limits of its own.</Empty>
      ) : (
        <table class="groups">
          <thead>
            <tr>
              <th scope="col">Group</th>
              <th scope="col" class="num">
                Waiting
              </th>
              <th scope="col">Running</th>
              <th scope="col">Next start</th>
              <th scope="col">Own limits</th>
              {page.may.operate && <th scope="col">Change</th>}
            </tr>
          </thead>
          <tbody>
            {groups.map((group) => (
              <tr key={group.group}>
                <th scope="row" class="long">
                  <a
                    data-row
                    href={queueLink(
                      store,
                      queue,
                      'jobs',
                      `group:${group.group === '' ? NONE : JSON.stringify(group.group)}`,
                    )}
                  >
                    {nameOf(group.group)}
                  </a>
                </th>
                <td class="num" data-label="Waiting">
                  {count(group.waiting)}
                  {group.waiting >= 10_000 && '+'}
                </td>
                <td class="slots" data-label="Running">
                  <Running running={group.running} limit={group.limits?.running ?? most} />
                </td>
                <td data-label="Next start">
                  <NextStart group={group} />
                </td>
                <td class="long" data-label="Own limits">
                  {group.limits && limitsText(group.limits)}
                </td>
                {page.may.operate && (
                  <td data-label="Change">
                    <button
                      type="button"
                      aria-label={`Limits of ${nameOf(group.group)}`}
                      onClick={() => setEdited(group.group)}
                    >
                      Limits …
                    </button>
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {(groups.length === PAGE || afters.length > 0) && (
        <div class="pager">
          <button type="button" disabled={afters.length === 0} onClick={() => setAfters(afters.slice(0, -1))}>
            ← Back
          </button>
          <button
            type="button"
            disabled={groups.length < PAGE}
            onClick={() => setAfters([...afters, groups.at(-1)?.group ?? ''])}
          >
            Next →
          </button>
        </div>
      )}
      {changing !== undefined && (
        <Edit
          store={store}
          queue={queue}
          group={changing}
          close={() => {
            setEdited(undefined)
            changed()
          }}
        />
      )}
    </>
  )
}

const Running = ({ running, limit }: { running: number; limit: number | null }) => (
  <>
    {limit !== null && <meter min={0} max={limit} value={running} aria-label={`${running} of ${limit} run`} />}
    {count(running)}
    {limit !== null && <span class="mute"> / {count(limit)}</span>}
  </>
)

const NextStart = ({ group: { waiting, nextStart } }: { group: GroupRecord }) => {
  if (waiting === 0) return null
  if (nextStart === null) return <Badge kind="warn">at its limit</Badge>
  return nextStart === 0 ? <span>now</span> : <Badge kind="warn">{`in ${duration(nextStart)}`}</Badge>
}

function limitsText({ running, rate, weight }: NonNullable<GroupRecord['limits']>): string {
  const parts = [
    running === null ? '' : `${count(running)} at once`,
    rate === null ? '' : rateText(rate),
    weight === 1 ? '' : `weight ${weight}`,
  ]
  return parts.filter((part) => part !== '').join(', ') || 'as the queue'
}

const Edit = ({
  store,
  queue,
  group,
  close,
}: {
  store: string
  queue: string
  group: GroupRecord
  close: () => void
}) => {
  const { limits } = group
  const [running, setRunning] = useState(limits?.running == null ? '' : String(limits.running))
  const [rate, setRate] = useState(limits?.rate == null ? '' : rateText(limits.rate))
  const [weight, setWeight] = useState(String(limits?.weight ?? 1))
  const [fault, setFault] = useState<string | undefined>(undefined)
  const name = nameOf(group.group)
  const send = async (value: object | null, done: string) => {
    if (await act('limitGroup', { store, queue, group: group.group, limits: value }, done, setFault)) close()
  }
  const save = async (event: Event) => {
    event.preventDefault()
    try {
      if (running !== '' && !/^\d+$/.test(running)) throw new Error('Running at once is a whole number, or nothing.')
      const given = { running: running === '' ? null : Number(running), rate: rateOf(rate), weight: Number(weight) }
      await send(given, `${name}: limits set`)
    } catch (error) {
      setFault(messageOf(error))
    }
  }
  return (
    <Dialog title={`Limits of ${name}`} close={close}>
      <form onSubmit={save}>
        <label>
          Running at once
          <input
            value={running}
            inputMode="numeric"
            placeholder="as the queue"
            onInput={(event) => setRunning(event.currentTarget.value)}
          />
        </label>
        <label>
          Rate of starts
          <input
            value={rate}
            placeholder="as the queue; such as 10/s"
            onInput={(event) => setRate(event.currentTarget.value)}
          />
        </label>
        <label>
          Weight
          <input value={weight} inputMode="decimal" onInput={(event) => setWeight(event.currentTarget.value)} />
        </label>
        <Fault text={fault} />
        <footer>
          {limits !== null && (
            <button type="button" class="danger" onClick={() => send(null, `${name}: as the queue again`)}>
              Take away
            </button>
          )}
          <span class="grow" />
          <button type="button" onClick={close}>
            Leave it
          </button>
          <button type="submit" class="solid">
            Save
          </button>
        </footer>
      </form>
    </Dialog>
  )
}
