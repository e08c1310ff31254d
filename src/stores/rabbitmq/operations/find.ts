import { lacks } from '../capabilities.ts'

/** AMQP finds no message by its id. */
export const find = lacks('find', 'find')
export const ahead = lacks('find', 'ahead')
