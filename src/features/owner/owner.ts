import type { LeaseFeature } from '../../lease/feature.js';
import { leaseMark } from '../../pool/lease-mark.js';
import type { OwnerSettings } from '../../pool/pool-options.js';
import type { LeaseRequest } from '../../services/browser-service.js';

/** Says in the tags of a lease which process of which machine has it. */
export class Owner implements LeaseFeature {
  readonly name = 'owner';
  readonly #isShown: boolean;

  constructor({ owner }: OwnerSettings) {
    this.#isShown = owner;
  }

  request(): Partial<LeaseRequest> {
    return this.#isShown ? { mark: leaseMark() } : {};
  }
}
