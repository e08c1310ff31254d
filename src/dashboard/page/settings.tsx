/** Every setting of a queue: what is in effect, who has set it, and a change as an operator, which code does not undo. */
import { useState } from 'preact/hooks'
import type { QueueSetting } from '../../pond/queue-options.ts'
import type { QueuePage } from '../views.ts'
import { messageOf } from './api.ts'
import { act, notify } from './notices.tsx'
import { Badge } from './parts.tsx'
import { SETTING_ORDER, SETTINGS } from './setting-texts.ts'

interface Props {
  store: string
  queue: string
  page: QueuePage
  changed: () => void
}

const BY: Readonly<Record<QueueSetting['by'], string>> = { operator: 'operator', code: 'code', default: 'default' }

export const Settings = ({ store, queue, page, changed }: Props) => (
  <>
    <p class="mute">
      What an operator sets here stays, over restarts and whatever programs give, until it is given back to them.
    </p>
    <table class="settings">
      <thead>
        <tr>
          <th scope="col">Setting</th>
          <th scope="col">In effect</th>
          <th scope="col">Set by</th>
          {page.may.operate && <th scope="col">Change</th>}
        </tr>
      </thead>
      <tbody>
        {SETTING_ORDER.flatMap((name) => {
          const setting = page.settings.find((one) => one.name === name)
          return setting === undefined
            ? []
            : [
                <Row
                  key={name}
                  store={store}
                  queue={queue}
                  setting={setting}
                  mayChange={page.may.operate}
                  changed={changed}
                />,
              ]
        })}
      </tbody>
    </table>
  </>
)

/** Focuses a field when it appears; what is typed takes the place of the value. */
function focused(input: HTMLInputElement | null): void {
  if (input !== document.activeElement) input?.focus()
  input?.select()
}

interface RowProps {
  store: string
  queue: string
  setting: QueueSetting
  mayChange: boolean
  changed: () => void
}

const Row = ({ store, queue, setting, mayChange, changed }: RowProps) => {
  const { name, value, by, code } = setting
  const { label, help, shown, override } = SETTINGS[name]
  const [typed, setTyped] = useState<string | undefined>(undefined)
  const unedited = shown(value).replaceAll(',', name === 'backoff' ? ',' : '')
  const save = async (event: Event) => {
    event.preventDefault()
    try {
      const settings = override((typed ?? '').trim())
      if (!(await act('override', { store, queue, settings }, `${label}: ${typed}`))) return
    } catch (error) {
      notify(`${label}: ${messageOf(error)}`, true)
      return
    }
    setTyped(undefined)
    changed()
  }
  const giveBack = async () => {
    await act('clear', { store, queue, names: [name] }, `${label}: given back to code`)
    changed()
  }
  return (
    <tr>
      <th scope="row">
        {label}
        <small class="mute">{help}</small>
      </th>
      <td data-label="In effect">
        {typed === undefined ? (
          <b>{shown(value)}</b>
        ) : (
          <form onSubmit={save} id={`set-${name}`}>
            <input
              aria-label={label}
              value={typed}
              ref={focused}
              onInput={(event) => setTyped(event.currentTarget.value)}
              onKeyDown={(event) => event.key === 'Escape' && setTyped(undefined)}
            />
            {typed.trim() !== '' && typed !== unedited && (
              <small class="mute" role="status">
                {shown(value)} → <b>{typed.trim()}</b>
              </small>
            )}
          </form>
        )}
      </td>
      <td data-label="Set by">
        <Badge kind={by === 'operator' ? 'note' : 'plain'}>{BY[by]}</Badge>
        {by === 'operator' && <small class="mute"> code gives {code === undefined ? 'nothing' : shown(code)}</small>}
      </td>
      {mayChange && (
        <td data-label="Change">
          {typed === undefined ? (
            <>
              <button
                // Of its own: the click must not go on as one of the button that takes its place, which submits.
                key="edit"
                type="button"
                aria-label={`Edit ${label}`}
                onClick={() => setTyped(unedited)}
              >
                Edit
              </button>
              {by === 'operator' && (
                <button type="button" class="quiet" aria-label={`Give ${label} back`} onClick={giveBack}>
                  Give back
                </button>
              )}
            </>
          ) : (
            <>
              <button key="save" type="submit" class="solid" form={`set-${name}`}>
                Save
              </button>
              <button type="button" class="quiet" onClick={() => setTyped(undefined)}>
                Cancel
              </button>
            </>
          )}
        </td>
      )}
    </tr>
  )
}
