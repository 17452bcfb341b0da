/** All parts together: the intersection of the types of an object's properties. */
export type Together<Parts> = {
  [Name in keyof Parts]: (part: Parts[Name]) => void;
}[keyof Parts] extends (all: infer All) => void
  ? All
  : never;
