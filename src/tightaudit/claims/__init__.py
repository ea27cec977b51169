"""What is promised: one file per claim, each with its privacy curve and its channel, and families of them."""
