import { holds } from '../../child.ts'

/** From the mail server, when asked: what it has seen until now. */
export interface Book {
  /** When each mail was taken, in ms of the machine's clock, and to whom it goes. */
  accepted: { at: number; to: string }[]
  refused: number
  /** Most mails that came within a second, taken or not. */
  busiest: number
  /** Whose 5 s are over. */
  delivered: number
}

export const isBook = holds<Book>('accepted', 'refused')
