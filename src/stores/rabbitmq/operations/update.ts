import { lacks } from '../capabilities.ts'

/** AMQP finds no message by its id. */
export const update = lacks('update', 'update')
