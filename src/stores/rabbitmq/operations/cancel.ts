import { lacks } from '../capabilities.ts'

/** AMQP finds no message by its id. */
export const cancel = lacks('cancel', 'cancel')
