/** Light, dark, or as the system has it. Kept in the browser. */
import { notify } from './notices.tsx'

const NAMES = ['auto', 'light', 'dark'] as const
const PLACE = 'millpond-theme'

export function theme(): (typeof NAMES)[number] {
  try {
    return NAMES.find((name) => name === localStorage.getItem(PLACE)) ?? 'auto'
  } catch {
    // A browser may forbid it.
    return 'auto'
  }
}

export function showTheme(): void {
  document.documentElement.dataset.theme = theme()
}

export function cycleTheme(): void {
  const next = NAMES[(NAMES.indexOf(theme()) + 1) % NAMES.length] ?? 'auto'
  try {
    localStorage.setItem(PLACE, next)
  } catch {
    return
  }
  showTheme()
  notify(`Colours: ${next === 'auto' ? 'as the system has them' : next}`)
}
