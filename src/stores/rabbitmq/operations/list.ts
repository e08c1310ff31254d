import { lacks } from '../capabilities.ts'

/** AMQP shows no message without delivering it. */
export const list = lacks('lists', 'list')
export const groups = lacks('groups', 'groups')
