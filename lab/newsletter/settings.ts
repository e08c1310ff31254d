/** What experiment E2 fixes. */

/** Requests per second, sent whether or not earlier ones were answered. */
export const RATE = 100
/** How long the mail server takes over one mail, in ms. */
export const MAIL_TAKES = 5000
/** When a client gives up, in ms. */
export const CLIENT_TIMEOUT = 30_000
/** The published row that answers every request and sends every mail: queue size 3,000, 1,000 workers. */
export const QUEUE_SIZE = 3000
export const WORKERS = 1000
/** Short, in ms, so that what a killed worker held comes back while we watch; 30 s unless set. */
export const LEASE = 8000

/** Of the load on each variant, in ms: as published, or shortened so that all three fit into a minute. */
export const DURATION = { full: 30_000, usual: 10_000 }
/** From the first request to the SIGKILL, of the duration: late enough that mails have gone out, and that hundreds are under way. */
export const KILL_AT = 0.6
