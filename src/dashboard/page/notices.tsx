/** Short notices of what an action came to, also read out by screen readers. */
import { useEffect, useState } from 'preact/hooks'
import { ask, messageOf } from './api.ts'

interface Notice {
  id: number
  text: string
  isFault: boolean
}

let notices: readonly Notice[] = []
let last = 0
let redraw = () => {}

function change(next: readonly Notice[]): void {
  notices = next
  redraw()
}

export function notify(text: string, isFault = false): void {
  const id = ++last
  change([...notices.slice(-3), { id, text, isFault }])
  setTimeout(() => change(notices.filter((one) => one.id !== id)), isFault ? 10_000 : 4000)
}

/**
 * Asks for an action and tells what it came to.
 * @param failed told what went wrong; a dialog shows it itself, since nothing outside of an open dialog is read out
 * @returns whether it was done
 */
export async function act(
  name: string,
  body: object,
  done: string,
  failed: (text: string) => void = (text) => notify(text, true),
): Promise<boolean> {
  try {
    await ask(name, body)
    notify(done)
    return true
  } catch (error) {
    failed(messageOf(error))
    return false
  }
}

/** Copies, and tells so. A browser lets a page copy only over HTTPS or on this machine. */
export function copy(text: string): void {
  const { clipboard } = navigator
  const failed = () => notify('The browser does not let this page copy.', true)
  if (clipboard === undefined) failed()
  else clipboard.writeText(text).then(() => notify('Copied'), failed)
}

export const Notices = () => {
  const [, set] = useState(0)
  useEffect(() => {
    redraw = () => set((n) => n + 1)
  }, [])
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.map(({ id, text, isFault }) => (
        <p key={id} class={isFault ? 'bad' : 'good'}>
          {text}
        </p>
      ))}
    </div>
  )
}
