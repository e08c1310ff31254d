/** A change of a job that does not run yet. */
import { useState } from 'preact/hooks'
import type { JobPage } from '../views.ts'
import { messageOf } from './api.ts'
import { act } from './notices.tsx'
import { Dialog, Fault } from './parts.tsx'
import { jsonOf } from './value.tsx'

export const JobEdit = ({ store, job, close }: { store: string; job: JobPage; close: () => void }) => {
  const json =
    job.data.state === 'shown' && !job.data.redacted && !job.data.cut && job.data.encoding === 'json'
      ? jsonOf(job.data.value)
      : undefined
  const [data, setData] = useState(json)
  const [priority, setPriority] = useState(String(job.priority))
  const [due, setDue] = useState('')
  const [fault, setFault] = useState<string | undefined>(undefined)
  const save = async (event: Event) => {
    event.preventDefault()
    try {
      const change = {
        ...(data !== json && data !== undefined && { data: JSON.parse(data) as unknown }),
        ...(Number(priority) !== job.priority && { priority: Number(priority) }),
        ...(due !== '' && { runAt: new Date(due).getTime() }),
      }
      if (Object.keys(change).length === 0) return close()
      if (data !== json && data !== undefined) checkIntegers(data)
      if (await act('update', { store, id: job.id, change }, 'It is changed', setFault)) close()
    } catch (error) {
      setFault(messageOf(error))
    }
  }
  return (
    <Dialog title="Edit the job" close={close}>
      <form onSubmit={save}>
        {json === undefined ? (
          <p class="mute">The data cannot be edited here: you may not see all of them, or they are not plain JSON.</p>
        ) : (
          <label>
            Data, as JSON
            <textarea
              rows={12}
              class="mono"
              spellcheck={false}
              value={data}
              onInput={(event) => setData(event.currentTarget.value)}
            />
          </label>
        )}
        <label>
          Priority, 0 to 9
          <input
            type="number"
            min={0}
            max={9}
            value={priority}
            onInput={(event) => setPriority(event.currentTarget.value)}
          />
        </label>
        <label>
          Due at, in your time zone
          <input type="datetime-local" step={1} value={due} onInput={(event) => setDue(event.currentTarget.value)} />
        </label>
        <Fault text={fault} />
        <footer>
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

/** @throws Error: JavaScript would change an integer of the text */
function checkIntegers(text: string): void {
  const outside = text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '')
  const changed = outside.match(/-?\d{16,}/g)?.find((digits) => String(Number(digits)) !== digits)
  if (changed !== undefined) throw new Error(`${changed} is too large for a JSON number: put it in quotes`)
}
