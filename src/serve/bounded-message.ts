/**
 * Ends the reading of a connection at its first request too many.
 *
 * Node makes objects of all requests in the 64 KiB that it has read, also when the connection is cut at the 17th of 1,700: 1,000 such connections
 * took gigabytes before the first of them was closed. Only what looks like a change of protocol stops Node's parser, and without a
 * listener for `upgrade` Node then destroys the connection. Where a runtime knows no such option, the connection is cut by `inTurn`.
 */
import { IncomingMessage } from 'node:http'
import { isFull } from '../web/turns.ts'

/** For the option `IncomingMessage` of `createServer`. */
export class BoundedMessage extends IncomingMessage {
  declare private isUpgrade: boolean | null

  get upgrade(): boolean | null {
    return this.isUpgrade
  }

  /** Node says here what the headers ask for. */
  set upgrade(asked: boolean | null) {
    this.isUpgrade = asked || isFull(this.socket)
  }
}
