import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Lease } from '../pool/lease.js';

/** Takes over an upgrade request that was found good; returns what cuts the connection when the lease ends. */
export type OpenSocket = (lease: Lease, request: IncomingMessage, socket: Socket, head: Buffer) => () => void;
