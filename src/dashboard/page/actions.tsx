/** Who did what: the log of actions, newest first. */
import { useState } from 'preact/hooks'
import type { ActionRow, ActionsPage } from '../views.ts'
import { clock, count } from './format.ts'
import { useAsk, useLive } from './live.ts'
import { Name } from './name.tsx'
import { Ago, Asking, Empty, Fault, Pager } from './parts.tsx'
import { jobLink, queueLink } from './route.ts'

export const Actions = () => {
  const stores = useLive().tick?.stores.filter(({ capabilities: { restore, lists } }) => restore && lists) ?? []
  return (
    <>
      <h1>Actions</h1>
      <p class="mute">
        What people and tools did with the dashboard, over HTTP and with the command line, for 90 days.
      </p>
      {stores.map(({ name }) => (
        <StoreActions key={name} store={name} title={stores.length > 1 ? name : undefined} />
      ))}
    </>
  )
}

const StoreActions = ({ store, title }: { store: string; title: string | undefined }) => {
  const [pages, setPages] = useState<readonly string[]>([])
  const { answer, fault } = useAsk<ActionsPage>('actions', { store, after: pages.at(-1) })
  const actions = answer?.actions ?? []
  return (
    <section>
      {title !== undefined && <h2>{title}</h2>}
      <Fault text={fault} />
      {answer === undefined && fault === undefined && <Asking />}
      {answer?.isPart && <p class="mute">Only a part of the log was looked at so far. “Next” goes on.</p>}
      {answer !== undefined && actions.length === 0 && !answer.isPart && (
        <Empty>Nobody has changed anything yet.</Empty>
      )}
      {actions.length > 0 && (
        <table class="actions-log">
          <thead>
            <tr>
              <th scope="col">When</th>
              <th scope="col">Who</th>
              <th scope="col">Did</th>
              <th scope="col">Queue</th>
              <th scope="col">What</th>
              <th scope="col" class="num">
                Jobs
              </th>
            </tr>
          </thead>
          <tbody>
            {actions.map((action, index) => (
              <Row key={`${action.at} ${index}`} store={store} action={action} />
            ))}
          </tbody>
        </table>
      )}
      <Pager pages={pages} next={answer?.next ?? null} turn={setPages} />
    </section>
  )
}

/** `requeueAll` as `requeue all`. */
const words = (action: string): string => action.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

const Row = ({
  store,
  action: { at, who, through, action, queue, id, schedule, group, settings, detail, count: jobs },
}: RowProps) => (
  <tr>
    <th scope="row" class="when">
      {clock(at).slice(0, 19)}
      <small class="mute">
        <Ago at={at} says=" ago" />
      </small>
    </th>
    <td class="long" data-label="Who">
      {who}
      <small class="mute">{through}</small>
    </td>
    <td data-label="Did">{words(action)}</td>
    <td class="long" data-label="Queue">
      <a data-row href={queueLink(store, queue)}>
        <Name text={queue} />
      </a>
    </td>
    <td class="long" data-label="What">
      {id !== undefined && (
        <>
          <a class="mono" href={jobLink(store, id)} title={id}>
            {id.slice(-12)}
          </a>{' '}
        </>
      )}
      {[schedule, group !== undefined && `group ${group || 'none'}`, detail ?? settings?.join(', ')]
        .filter(Boolean)
        .join(' ')}
    </td>
    <td class="num" data-label="Jobs">
      {/All$/.test(action) || id !== undefined || jobs > 1 ? count(jobs) : ''}
    </td>
  </tr>
)

interface RowProps {
  store: string
  action: ActionRow
}
