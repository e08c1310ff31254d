/** Keys that work everywhere but in fields: j, k, /, g o, g w, u, and ⌘K or Ctrl+K also there. */
import { go } from './route.ts'

const isField = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.matches('input, textarea, select') || target.isContentEditable)

/** What opens the palette, as the keyboard has it. */
export const PALETTE_KEY = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘K' : 'Ctrl+K'

/** The key before, also over a change of the view: `g w`. */
let before = ''

export function onKeys({ palette, up }: { palette: () => void; up: () => void }): () => void {
  const pressed = (event: KeyboardEvent) => {
    if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k') {
      event.preventDefault()
      palette()
      return
    }
    if (
      isField(event.target) ||
      event.metaKey ||
      event.ctrlKey ||
      event.altKey ||
      document.querySelector('dialog[open]')
    )
      return
    const { key } = event
    if (key === 'j') step(1)
    else if (key === 'k') step(-1)
    else if (key === '/') {
      event.preventDefault()
      const box = document.querySelector<HTMLElement>('[data-search]')
      if (box === null) palette()
      else box.focus()
    } else if (key === 'u') up()
    else if (before === 'g' && key === 'o') go('#/')
    else if (before === 'g' && key === 'w') go('#/workers')
    before = key
  }
  addEventListener('keydown', pressed)
  return () => removeEventListener('keydown', pressed)
}

/** Moves the focus to the next or the previous row. */
function step(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')]
  const at = rows.findIndex((row) => row.matches(':focus'))
  const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by]
  next?.focus()
  next?.scrollIntoView({ block: 'nearest' })
}
