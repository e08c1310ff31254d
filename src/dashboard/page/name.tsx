/** A queue's name, which breaks behind its separators and not within a word. */

export const Name = ({ text }: { text: string }) => (
  <>{text.split(/(?<=[/.:_-])/).flatMap((part, index) => (index === 0 ? [part] : [<wbr key={index} />, part]))}</>
)
