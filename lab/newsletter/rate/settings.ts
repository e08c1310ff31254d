/** What the mail server allows, and how much there is to send. */

/** Mails that the server takes within any second; it refuses the others. */
export const LIMIT = 200
/** Sender processes, and how many mails each may have under way. All together have twice as many slots as the limit can fill. */
export const PROCESSES = 2
export const SLOTS = 1000
/** How long a sender without a queue of its own waits after a refusal, in ms; the server asks for it. */
export const RETRY_AFTER = 1000
