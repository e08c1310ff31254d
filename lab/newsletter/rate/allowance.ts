/** How the mail server counts. It asks for every mail that comes, and only mails that are allowed count. */
import { LIMIT } from './settings.ts'
import type { Counting } from './variants.ts'

const SECOND = 1000

export type Allow = (now: number) => boolean

export const ALLOWANCES: Record<Counting, () => Allow> = {
  bucket() {
    let tokens = LIMIT
    let at = 0
    return (now) => {
      tokens = Math.min(LIMIT, tokens + ((now - at) / SECOND) * LIMIT)
      at = now
      if (tokens < 1) return false
      tokens--
      return true
    }
  },
  window() {
    const taken: number[] = []
    return (now) => {
      while (taken[0] !== undefined && taken[0] <= now - SECOND) taken.shift()
      if (taken.length >= LIMIT) return false
      taken.push(now)
      return true
    }
  },
}
