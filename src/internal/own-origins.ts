/** Origins that this very process serves: once it no longer runs its event loop, nobody answers there. */
export const ownOrigins = new Set<string>();
