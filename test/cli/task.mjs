/** A task for `pooled-browser map`. */
export default () => 'ran';
