/** A change of everything that a search finds: first what it would change, then how far it is. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { BulkAction, BulkLine, BulkPreviewView, Search } from '../views.ts'
import { ask, askLines, messageOf } from './api.ts'
import { count } from './format.ts'
import { notify } from './notices.tsx'
import { Dialog, Empty, Fault, State } from './parts.tsx'

const WORDS: Readonly<Record<BulkAction, { verb: string; done: string; note: string }>> = {
  requeue: { verb: 'Retry', done: 'retried', note: 'They wait again, with all their attempts.' },
  cancel: { verb: 'Cancel', done: 'cancelled', note: 'The handlers of running ones are told to stop.' },
  remove: { verb: 'Remove', done: 'removed', note: 'They are gone for good, as if they had never been pushed.' },
  promote: { verb: 'Run', done: 'due now', note: 'They wait from now on, whatever their time was.' },
}

/** Characters of an error's message. */
const GLANCE = 120

const jobs = (many: number): string => `${count(many)} ${many === 1 ? 'job' : 'jobs'}`

interface Props {
  store: string
  queue: string
  action: BulkAction
  search: Search
  text: string
  close: () => void
}

export const Bulk = ({ store, queue, action, search, text, close }: Props) => {
  // The search at the time of the click: its bounds of time must not move under the preview.
  const [body] = useState({ store, queue, action, search })
  const [preview, setPreview] = useState<BulkPreviewView | undefined>(undefined)
  const [fault, setFault] = useState<string | undefined>(undefined)
  const [line, setLine] = useState<BulkLine | undefined>(undefined)
  const [isStopped, setStopped] = useState(false)
  const stop = useRef<AbortController | undefined>(undefined)
  const first = useRef<HTMLButtonElement>(null)
  const { verb, done, note } = WORDS[action]
  useEffect(() => {
    ask<BulkPreviewView>('bulk', { ...body, preview: true }).then(setPreview, (error: unknown) =>
      setFault(messageOf(error)),
    )
    return () => stop.current?.abort()
  }, [body])
  const run = async () => {
    stop.current = new AbortController()
    // The button that was pressed is gone.
    first.current?.focus()
    let changed = 0
    setLine({ kind: 'progress', looked: 0, total: preview?.count ?? 0, changed: 0 })
    try {
      const from = preview?.from
      await askLines('bulk', { ...body, ...(from !== undefined && { from }) }, stop.current.signal, (next) => {
        setLine(next)
        changed = next.changed
        if (next.kind === 'done') notify(`${jobs(changed)} ${done}`)
        if (next.kind === 'failed') setFault(`It stopped: ${next.message}. What was changed stays changed.`)
      })
    } catch (error) {
      if (!stop.current.signal.aborted) return setFault(messageOf(error))
      setStopped(true)
      // Also for somebody who has closed the dialog.
      notify(`Stopped: ${jobs(changed)} ${done}`)
    }
  }
  const isRunning = line?.kind === 'progress' && fault === undefined && !isStopped
  const many = preview === undefined ? '' : `${preview.isEstimate ? 'about ' : ''}${jobs(preview.count)}`
  return (
    <Dialog title={`${verb}: ${queue}`} close={close}>
      <p>
        Everything that is <State state={search.state} />
        {text === '' ? '' : ' and fits '}
        {text !== '' && <code>{text}</code>}. {note}
      </p>
      <Fault text={fault} />
      {preview === undefined && fault === undefined && <Empty>Counting …</Empty>}
      {preview !== undefined && line === undefined && (
        <>
          <p class="huge">{many}</p>
          {preview.sample.length > 0 && (
            <>
              <p class="mute">The first of them:</p>
              <ul class="sample">
                {preview.sample.slice(0, 5).map((job) => (
                  <li key={job.id}>
                    <code>{job.id}</code> {job.group && <span>{job.group}</span>}{' '}
                    {job.error && (
                      <span class="mute">
                        {job.error.code} {job.error.message?.slice(0, GLANCE)}
                      </span>
                    )}
                  </li>
                ))}
              </ul>
            </>
          )}
        </>
      )}
      {line !== undefined && (
        <div class="progress">
          <progress
            max={Math.max(1, line.total)}
            value={line.kind === 'done' ? Math.max(1, line.total) : line.looked}
            aria-label="Progress"
          />
          <p role="status">
            {line.kind === 'done' ? 'Done: ' : isStopped ? 'Stopped: ' : ''}
            {count(line.changed)} {done}
            {line.kind === 'progress' && line.total > 0
              ? `, ${count(line.looked)} of about ${count(line.total)} looked at`
              : ''}
          </p>
        </div>
      )}
      <footer>
        {isRunning ? (
          <button ref={first} type="button" onClick={() => stop.current?.abort()}>
            Stop
          </button>
        ) : (
          <button ref={first} type="button" onClick={close}>
            {line === undefined ? 'Leave it' : 'Close'}
          </button>
        )}
        {line === undefined && (
          <button
            type="button"
            class={action === 'remove' || action === 'cancel' ? 'danger solid' : 'solid'}
            disabled={!preview?.count}
            onClick={run}
          >
            {verb} {many}
          </button>
        )}
      </footer>
    </Dialog>
  )
}
