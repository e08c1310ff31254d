/** What every server here offers to those who use it. */
export interface Server {
  readonly name: string
  readonly url: string
  readonly port: number
  /** The present process; another one after each restart. */
  readonly pid: number
  /** Resolves when the signal is delivered; for SIGKILL, when the process is gone. The folder and the port stay its own. */
  kill(signal: NodeJS.Signals): Promise<void>
  /** Ends it in good order unless it is gone already, and starts it again over the same data, on the same port. Resolves when it answers. */
  restart(): Promise<void>
  /** Ends it and removes its folder. */
  stop(): Promise<void>
}

/** The server cannot run here; the message says what is missing and how to get it. */
export class ServerMissing extends Error {
  override name = 'ServerMissing'
}
