"""Who a credential stands for, and what that caller may do."""
